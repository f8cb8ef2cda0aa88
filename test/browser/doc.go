// Package browser has the tests of the dashboard in a real browser: a headless Chromium that is driven by
// chromedp opens the page over an embedded fleet, with live updates, faults, hostile names, a phone's
// screen, dark mode, the keyboard alone, and 10,000 names. They do **not** show how other browsers draw it.
//
// They need a Chromium or Chrome (make chromium), and nothing else. CHROME names another browser. With
// -shots and a directory, pictures of the pages are kept there.
package browser
