package crontab

import (
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	now := utc(2026, 10, 24, 12, 34, 56)
	for _, bench := range []struct{ name, spec string }{
		{"second", "* * * * * *"},
		{"minutes", "*/5 * * * *"},
		{"daily", "30 2 * * *"},
		{"weekly", "0 9 * * mon"},
		{"yearly", "0 0 1 1 *"},
		{"leap", "0 0 29 2 *"},
		{"never", "0 0 30 2 *"},
		{"interval", "@every 90s"},
	} {
		for _, name := range []string{"UTC", "Europe/Berlin"} {
			s := mustParse(b, bench.spec, zone(b, name), GapRunAfter, FoldOnce)
			b.Run(bench.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Next(now)
				}
			})
		}
	}
}

func BenchmarkNewestOfYears(b *testing.B) {
	s := mustParse(b, "* * 9 1 1 *", zone(b, "Europe/Berlin"), GapRunAfter, FoldOnce)
	b.ReportAllocs()
	for b.Loop() {
		Newest(s, time.Unix(0, 0), utc(2026, 7, 1, 0, 0, 0))
	}
}

func BenchmarkJitter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Jitter("nightly-report", time.Unix(1e9, 0), time.Minute)
	}
}
