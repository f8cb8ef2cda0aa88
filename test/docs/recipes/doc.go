// Package recipes is the code of docs/recipes.md: what a service had with another library, and what it
// has with quorate, each between markers. The page's blocks are these regions, to the letter; the tests
// run them on an embedded fleet. Nothing of it can be imported: it is all in test files.
package recipes
