// Sync writes the regions of package recipes into the pages that name them.
//
// usage, in test/docs: go run ./sync
package main

import (
	"fmt"
	"os"

	"github.com/quorate/quorate/test/docs"
)

func main() {
	regions, err := docs.Regions("recipes")
	if err == nil {
		var changed []string
		changed, err = docs.Sync(docs.Root, regions)
		for _, page := range changed {
			fmt.Println("changed:", page)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sync:", err)
		os.Exit(1)
	}
}
