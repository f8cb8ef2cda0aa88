// Package clusters tries nodes that are Redis Clusters, on real ones: three clusters of three masters on
// loopback, whose servers are killed and come back empty, and whose slots move while leases are held.
//
// It has tests only.
package clusters
