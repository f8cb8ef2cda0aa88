package telemetry

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis reports every connection that a fault breaks
	goleak.VerifyTestMain(m)
}
