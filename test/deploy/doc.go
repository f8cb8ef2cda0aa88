// Package deploy checks the files in deploy: the nodes' configuration by starting real redis-servers with
// it, and working on them as its user; the compose file by the loader of Docker Compose, the manifests by the
// types of Kubernetes, strictly, the units by systemd-analyze where there is one and by a list of settings
// everywhere. It does not prove that Docker, Kubernetes or systemd run them: none of them is started.
package deploy
