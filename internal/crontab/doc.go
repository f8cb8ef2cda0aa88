// Package crontab is the arithmetic of schedules, and nothing else: it reads cron specs, and
// tells when they come due. It looks at no clock and keeps no state, so all replicas that ask it
// the same get the same answer, if their time zone databases agree. It does not guarantee that
// they do; compare [Text] for that.
//
// robfig/cron reads the fields of a spec. When they come due is decided here, because that
// package asks real time for what only the clock on the wall knows: a daily job at a time that is
// skipped when clocks go forward is left out that day (its issue #541), and one at a time that is
// repeated when they go back is run twice.
//
// # When clocks change
//
// First the times that match a spec are found as on a clock that never changes. Then it is seen
// at which real moments, if any, the clocks of the location show them:
//
//	                                     hours are named, as in        every hour, as in
//	                                     0 2 * * *, 0 */2 * * *        */5 * * * *, @hourly
//	an ordinary time                     then                          then
//	skipped      GapRunAfter (default)   first moment after the gap    not at all
//	             GapSkip                 not at all                    not at all
//	repeated     FoldOnce (default)      the first time                both times
//	             FoldTwice               both times                    both times
//
// So by default a daily job is run each day, once. A job whose hour field leaves out no hour comes
// due whenever clocks show a time that matches: in the hour that is repeated as in any other, and
// after one that is skipped there is nothing to make up for. Where clocks change by whole hours,
// that is by elapsed time. The policies do not concern it.
//
// Ticks at the same moment are one. That holds for all that fall into one gap, and for a tick at
// the moment at which it ends.
//
// A gap need not be an hour (Lord Howe's is half of one), nor due to daylight saving time, nor
// end on the day on which it begins. When clocks in Nuuk go from 23:00 to midnight, the tick of
// 23:30 comes due on the next day. Apia left out all of 30 December 2011, and the ticks of that
// day are one tick at the start of the 31st.
//
// With FoldOnce and GapRunAfter a tick comes due, in other words, when the latest time that the
// clocks have ever shown reaches it.
//
// # Intervals and single times
//
// "@every 90s" comes due at the multiples of the interval since the Unix epoch, wherever clocks
// stand. "@at" comes due once: a local time that is repeated the first time, and one that is
// skipped after the gap, or with GapSkip is an error.
package crontab
