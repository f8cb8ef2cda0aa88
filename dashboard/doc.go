// Package dashboard shows what a fleet does, as a web page to mount into a service: the nodes, who
// leads and who led, jobs with what became of their last ticks, the names that are held, and those that
// this process waited longest for. The page is live. It shows what the nodes said when they were last
// asked, and is **no** base for a decision of a program: by the time it is read it may be out of date. It
// does **not** know who may read it: mount it behind your own authentication.
//
//	board, err := dashboard.New(locker, dashboard.WithElectors(elector), dashboard.WithScheduler(sched))
//	…
//	defer board.Close() // before the Locker is closed
//	mux.Handle("/quorate/", http.StripPrefix("/quorate", board))
//
// It consists of embedded files and one stream of server-sent events for each open page, and loads
// nothing from elsewhere. All its URLs are relative, so any path will do.
//
// # What is asked of the nodes, and when
//
// The fleet is asked for all open pages together, and only while one is open and in the
// foreground:
//
//	what                     how                                     how often
//	nodes                    Locker.Check                            every WithInterval, 2 s by default
//	held names, leaders      Locker.List of what is held             after WithInterval, or four times as long as the
//	jobs                     Locker.List of "job/"                   last listing took, whichever is more
//	ledger of a job          Scheduler.Status                        with the listing, for 100 jobs at a time
//	leaders of WithElectors  Elector.Watch                           always, from New to Close
//
// A listing goes through all keys of the nodes by SCAN, which the user of the clients must be allowed.
// Where it is refused, the page says so and shows the rest.
//
// # What the page can know
//
//   - Leaders are found among the names that are held. An election that was vacant all the while is shown
//     only with WithElectors.
//   - The timeline has the terms that this handler has seen since New: those of WithElectors all the time,
//     others while a page was open. Where nothing is drawn, nobody was seen to lead.
//   - Next times are known of the jobs of the Scheduler given by WithScheduler. What became of the last ticks is
//     known of every job.
//   - A name is held since the moment that its token was proposed, which in the common case is a time. That
//     is why ages are "about".
//   - Waiting and holding times are those of leases of this process alone: see Recorder.
//   - A page is that of one process. Behind a load balancer have a browser kept with one replica (sticky sessions, or a
//     name for each): names that another replica answers with may be none, which the page says.
//   - While too few nodes answer, the page says so, and shows what was last known, with its age.
//
// # Limits
//
//	64 streams at a time; a reader that does not take its events for 10 s is dropped
//	20,000 held names are kept for the filter, and 200 are shown at a time; the rest are counted
//	200 elections and 200 jobs are shown, those that need attention first; 50 terms of an election
//	a Recorder keeps 512 names
//
// # Security
//
// The page shows names, identities, addresses of nodes and leaders, and shortened errors of jobs. Whoever can write to the
// nodes chooses these texts, and they are treated as hostile: they are set as text, never as markup; characters
// that do not print, or that turn the direction of writing, are shown as escapes; and the Content-Security-Policy
// allows no script, style or connection but the handler's own, and no frame around it.
//
// It is read-only unless WithActions is given. Then a job can be paused, resumed and triggered, a leader of this
// process can resign, and a name can be broken, by a POST that carries the token as "Authorization: Bearer …" and does
// not come from another site. The token is compared in constant time, and kept by the page until it is closed. Each
// action, and each that was refused, is logged with the remote address. It is no secret to those who can see the
// traffic: use TLS.
//
// A page of another site cannot read the data where browsers keep to the same-origin policy. On a listener without
// authentication also set WithHosts, so that a name which somebody has made to resolve to your address is refused.
//
// # When something fails
//
//	too few nodes answer      the page says so, marks what is old with its age, and recovers by itself
//	SCAN is refused           nodes, elections of WithElectors and what was seen before are shown; the page says what to allow
//	one job cannot be read    its row says why
//	the stream breaks         the page says so, and connects again, at growing intervals of up to 15 s
//	a middleware hides Flush  the stream is answered with 500, and the log says what the middleware lacks
//	a reader is slow          its stream is ended; the page connects again, and is sent the newest state
//	the Locker is closed      the page says so
package dashboard
