// Package telemetry checks docs/telemetry.md, the alerts and the dashboard in deploy against what comes out
// of quorate: its replicas run in fake time, with faults, and are scraped as Prometheus does it, through
// OpenTelemetry's own exporter. It does not prove that Prometheus or Grafana load the files: the rules are
// evaluated by Prometheus' engine, and the dashboard's queries are parsed by it, but neither program runs.
package telemetry
