package docs

// parameters are what the statements of a block may take for granted, beside what preamble declares.
const parameters = `
	ctx context.Context, err error, t *testing.T,
	nodes, clients []redis.UniversalClient, a, b, c, node, client redis.UniversalClient,
	locker, leases *redlock.Locker, lease *redlock.Lease, status redlock.Status, token redlock.Token,
	elector *leader.Elector, term leader.Term,
	sched *scheduler.Scheduler, run scheduler.Run,
	guard *fencing.Guard,
	db *sql.DB, tx *sql.Tx, store data, fleet *redlocktest.Fleet, logger *slog.Logger,
	name string, mux *http.ServeMux,
`

// preamble is what stands before each block: what the pages import without saying so, and the service
// that they are about. A page that needs more says so in its code, not here, unless it is of this kind.
const preamble = `package snippet

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/dashboard"
	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
	gocronlock "github.com/quorate/quorate/scheduler/gocron"
)

// The store of the service, which refuses old tokens.
type data interface {
	redis.UniversalClient
	Update(context.Context, redlock.Token) error
}

// What the service does.
func bill(context.Context, redlock.Token) error              { return nil }
func charge(context.Context, redlock.Token) ([]byte, error)  { return nil, nil }
func mail(context.Context, []byte) error                     { return nil }
func use(*redlock.Locker)                                    {}
func alarm(...any)                                           {}

// Orders of a product, and its stock.
type order struct {
	units    int
	accepted bool
}

func stockOf(context.Context, *sql.Tx, string) (int, error)                    { return 0, nil }
func setStock(context.Context, *sql.Tx, string, int) error                     { return nil }
func sellAll(context.Context, string, redlock.Token, []*order) error           { return nil }

// A job: gocron takes any function, cron one without arguments.
type reporting func(context.Context, time.Time) error
func (reporting) Run() {}
var report reporting
`

// telemetryPreamble is that of docs/telemetry.md, whose code is of the module examples/telemetry.
const telemetryPreamble = `package snippet

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/redlock/redlocktest"
	"github.com/quorate/quorate/scheduler"
)

type data = redis.UniversalClient

var spans trace.SpanExporter
`
