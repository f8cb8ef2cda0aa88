package crontab

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Zones are compared over these years.
var (
	rulesFrom  = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	rulesUntil = time.Date(2045, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// Canonical is Text of what Parse makes of a spec.
func Canonical(spec string, loc *time.Location, gap Gap, fold Fold) (string, error) {
	s, err := Parse(spec, loc, gap, fold)
	if err != nil {
		return "", err
	}
	return Text(s), nil
}

// Text is equal for schedules that come due at the same times by the same rules, however they
// are written: spaces, names, lists, a time zone in the spec or beside it, and under which of its
// names. Zones are the same if their clocks are over the years 2025 to 2044, so it also tells two
// replicas whose time zone databases disagree. A policy is told only where it makes a difference.
// There is none, "", for a schedule that was given to Wrap.
func Text(s Schedule) string {
	switch s := s.(type) {
	case *local:
		zone, changes := rules(s.loc)
		text := s.calendar.String() + " in " + zone
		if changes && !s.calendar.everyHour() {
			text += fmt.Sprintf(", gap %v, fold %v", s.gap, s.fold)
		}
		return text
	case every:
		return "@every " + s.interval.String()
	case once:
		return "@at " + s.at.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return ""
}

// String writes a calendar as a spec again, with seconds.
func (c *calendar) String() string {
	fields := [6]string{
		field(c.second, allSeconds), field(c.minute, allMinutes), field(c.hour, allHours),
		field(c.dom, allDoms), field(c.month, allMonths), field(c.dow, allDows),
	}
	return strings.Join(fields[:], " ")
}

// field writes a set as a list of ranges.
func field(set, all uint64) string {
	if set == all {
		return "*"
	}
	var text strings.Builder
	for set != 0 {
		first := bits.TrailingZeros64(set)
		last := first + bits.TrailingZeros64(^(set >> first)) - 1
		if text.Len() > 0 {
			text.WriteString(",")
		}
		text.WriteString(strconv.Itoa(first))
		if last > first {
			text.WriteString("-" + strconv.Itoa(last))
		}
		set = set >> (last + 1) << (last + 1)
	}
	return text.String()
}

// rules tells what the clocks of a location do: their offset from UTC, if that does not change,
// or else a digest of all changes.
func rules(loc *time.Location) (text string, changes bool) {
	var list []byte
	s := stretchAt(loc, rulesFrom)
	offset := s.offset
	text = time.Unix(rulesFrom, 0).In(loc).Format("-07:00:00")
	list = binary.BigEndian.AppendUint64(list, uint64(offset))
	for s = s.next(); s.start < rulesUntil; s = s.next() {
		if s.offset != offset {
			offset = s.offset
			list = binary.BigEndian.AppendUint64(list, uint64(s.start))
			list = binary.BigEndian.AppendUint64(list, uint64(offset))
		}
	}
	if len(list) == 8 {
		return text, false
	}
	sum := sha256.Sum256(list)
	return "zone " + hex.EncodeToString(sum[:8]), true
}
