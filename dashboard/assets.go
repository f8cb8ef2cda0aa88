package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// contentTypes are set by hand: those of package mime depend on the machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	body, err := assets.ReadFile("assets/" + path.Base(name))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(body)
	header := w.Header()
	header.Set("Content-Type", contentTypes[path.Ext(name)])
	header.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	header.Set("Cache-Control", "no-cache") // kept, and asked for again whether it is still the same
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
