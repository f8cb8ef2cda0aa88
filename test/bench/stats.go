package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// quantile is that of sorted values, by the nearest rank; 0 of none.
func quantile[T cmp.Ordered](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median is the middle one, of an even number the lower of the two; 0 of none.
func median[T cmp.Ordered](values []T) T {
	return quantile(slices.Sorted(slices.Values(values)), 0.5)
}

func mean[T int | float64 | time.Duration](values []T) float64 {
	if len(values) == 0 {
		return 0
	}
	return float64(sum(values)) / float64(len(values))
}

func sum[T int | float64 | time.Duration](values []T) T {
	var s T
	for _, v := range values {
		s += v
	}
	return s
}

// jain is Jain's index of fairness: 1 when all have the same, 1/n when one has everything.
func jain(shares []int) float64 {
	var all, squares float64
	for _, s := range shares {
		all += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return all * all / (float64(len(shares)) * squares)
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
