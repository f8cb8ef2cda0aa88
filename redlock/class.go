package redlock

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// MaxMetricNames is how many different values of WithMetricName a Locker's metrics have.
	MaxMetricNames = 100
	// OtherMetricName stands for all values beyond MaxMetricNames.
	OtherMetricName = "other"
)

// WithMetricName puts names on the metrics of leases: of gives, for the name of a lease, the value of
// their attribute quorate.name, and "" for none. There may be millions of names, and each value is a
// series of each metric, so it should give the kind of thing that the name is of, not the name:
//
//	redlock.WithMetricName(func(name string) string {
//		kind, _, _ := strings.Cut(name, ":") // sku:42 is a sku
//		return kind
//	})
//
// The first MaxMetricNames values count, in the order in which they come up; all others are
// OtherMetricName. of is called some times for each acquisition, by several goroutines: it must be quick, and
// give the same for the same name.
// Default: metrics have no names.
func WithMetricName(of func(name string) string) Option {
	return option(func(s *settings) { s.metricName = of })
}

// A class is what the metrics of a lease say of its name.
type class struct {
	attributes []attribute.KeyValue
	// What is the same for each call is made once.
	plain, succeeded metric.MeasurementOption
}

func newClass(attributes ...attribute.KeyValue) *class {
	c := &class{attributes: attributes}
	c.plain, c.succeeded = c.with(), c.with(attrOutcome.String("ok"))
	return c
}

func (c *class) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, c.attributes...)...))
}

// classes are those of one Locker. Their number is bounded.
type classes struct {
	of      func(name string) string // or nil
	unnamed *class

	mu    sync.RWMutex
	known map[string]*class
}

func newClasses(of func(string) string) *classes {
	return &classes{of: of, unnamed: newClass(), known: map[string]*class{}}
}

func (cs *classes) get(name string) *class {
	if cs.of == nil {
		return cs.unnamed
	}
	value := cs.of(name)
	if value == "" {
		return cs.unnamed
	}
	cs.mu.RLock()
	c := cs.known[value]
	cs.mu.RUnlock()
	if c != nil {
		return c
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, ok := cs.known[value]; !ok && len(cs.known) >= MaxMetricNames {
		value = OtherMetricName
	}
	if cs.known[value] == nil {
		cs.known[value] = newClass(attrName.String(value))
	}
	return cs.known[value]
}
