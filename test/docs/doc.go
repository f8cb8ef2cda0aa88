// Package docs checks the documents: the README, the pages in docs and the package comments. Their
// Go code compiles, or is a region of code that is run; their commands exist and know their flags; every
// exported error and every line that is logged has its place in the page on troubles; every exported
// type has an example. It does not check that what they say in words is true.
//
// usage: go run ./sync writes the regions of package recipes into the pages.
package docs
