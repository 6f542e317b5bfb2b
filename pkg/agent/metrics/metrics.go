// Package metrics is what the agent counts, and the listener that serves it.
package metrics

import (
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Metrics are the agent's counters. Names are public API. It is safe for concurrent
// use.
type Metrics struct {
	registry *prometheus.Registry

	findings     *prometheus.CounterVec
	wouldBe      *prometheus.CounterVec
	condition    *prometheus.GaugeVec
	sourceUp     *prometheus.GaugeVec
	records      *prometheus.GaugeVec
	lost         *prometheus.GaugeVec
	checkSeconds *prometheus.HistogramVec
	checkErrors  *prometheus.CounterVec
	queue        prometheus.Gauge
	latency      prometheus.Histogram
	publishes    *prometheus.CounterVec
	stateErrors  prometheus.Counter
	standby      prometheus.Gauge

	problemCounter *prometheus.CounterVec
	problemGauge   *prometheus.GaugeVec
}

const namespace = "node_agent"

// New returns metrics on a registry of their own.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	m.findings = counter("findings_total", "Signs of faults, by reason and by what they are worth.", "reason", "severity")
	m.wouldBe = counter("shadow_findings_total", "Fatals that turned no condition because of shadow mode.", "reason")
	m.condition = gauge("condition", "1 when the node condition is True, 0 when it is False; absent when it is not written.", "type")
	m.sourceUp = gauge("source_up", "1 when the source of records can be read, 0 when the agent is blind on it.", "source")
	m.records = gauge("source_records_total", "Records read from the source since the start.", "source")
	m.lost = gauge("lost_records_total", "Records lost before they were read, since the start.", "source")
	m.checkSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "check_duration_seconds", Help: "Time of one run of a check.",
		Buckets: []float64{.0001, .001, .01, .1, 1, 10},
	}, []string{"check"})
	m.checkErrors = counter("check_errors_total", "Runs of a check that could not measure.", "check")
	m.queue = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "queue_depth", Help: "Events that wait to be written."})
	m.latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "publish_latency_seconds", Help: "From a change to the node's status at the API server.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 10, 60},
	})
	m.publishes = counter("publishes_total", "Writes of the node's status, by result.", "result")
	m.stateErrors = prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "state_errors_total", Help: "Times that the state directory could not be written."})
	m.standby = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "standby", Help: "1 while another agent owns the node's conditions."})
	info := gauge("build_info", "1, with the agent's version.", "version")
	info.WithLabelValues(version.Version()).Set(1)
	// node-problem-detector's two, under its names.
	m.problemCounter = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "problem_counter", Help: "Number of times a specific type of problem have occurred."}, []string{"reason"})
	m.problemGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "problem_gauge", Help: "Whether a specific type of problem is affecting the node or not."}, []string{"type", "reason"})
	m.registry.MustRegister(m.findings, m.wouldBe, m.condition, m.sourceUp, m.records, m.lost, m.checkSeconds, m.checkErrors,
		m.queue, m.latency, m.publishes, m.stateErrors, m.standby, info, m.problemCounter, m.problemGauge,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		// The live heap is what a garbage collection has to walk: it bounds how long a
		// neighbour may notice it.
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(
			collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)})))
	return m
}

// Found counts a finding that the ledger took.
func (m *Metrics) Found(reason string, o ledger.Outcome) {
	if !o.Counted {
		return
	}
	m.findings.WithLabelValues(reason, string(o.Severity)).Inc()
	if o.Shadow {
		m.wouldBe.WithLabelValues(reason).Inc()
	}
	if o.Severity.Rank() >= health.Warning.Rank() {
		m.problemCounter.WithLabelValues(reason).Inc()
	}
}

// Conditions shows what the conditions are now.
func (m *Metrics) Conditions(v ledger.View) {
	m.condition.Reset()
	m.problemGauge.Reset()
	for _, c := range v.Conditions {
		healthy := 0.0
		if c.Healthy {
			healthy = 1
		} else {
			m.problemGauge.WithLabelValues(string(c.Type), c.Reason).Set(1)
		}
		m.condition.WithLabelValues(string(c.Type)).Set(healthy)
	}
	for _, f := range v.Findings {
		if f.Severity == string(health.Fatal) && !f.Shadow && f.Condition != "" {
			m.problemGauge.WithLabelValues(f.Condition, f.Reason).Set(1)
		}
	}
}

// Source shows how a source of records is doing.
func (m *Metrics) Source(s host.SourceStatus) {
	if s.Absent {
		m.sourceUp.DeleteLabelValues(s.Name)
		return
	}
	up := 0.0
	if s.Up {
		up = 1
	}
	m.sourceUp.WithLabelValues(s.Name).Set(up)
	m.records.WithLabelValues(s.Name).Set(float64(s.Records))
	m.lost.WithLabelValues(s.Name).Set(float64(s.Lost))
}

// Checked counts one run of a check.
func (m *Metrics) Checked(name string, took time.Duration, err error) {
	m.checkSeconds.WithLabelValues(name).Observe(took.Seconds())
	if err != nil {
		m.checkErrors.WithLabelValues(name).Inc()
	}
}

// Published counts one write of the node's status.
func (m *Metrics) Published(latency time.Duration, err error) {
	if err != nil {
		m.publishes.WithLabelValues("error").Inc()
		return
	}
	m.publishes.WithLabelValues("ok").Inc()
	m.latency.Observe(latency.Seconds())
}

// Queue shows how many Events wait.
func (m *Metrics) Queue(n int) { m.queue.Set(float64(n)) }

// StateError counts a failure to write the state directory.
func (m *Metrics) StateError() { m.stateErrors.Inc() }

// Standby shows whether another agent is in charge.
func (m *Metrics) Standby(on bool) {
	m.standby.Set(0)
	if on {
		m.standby.Set(1)
	}
}
