package settings

import "strings"

// Nearest returns the candidate that somebody who wrote word most likely meant, or "" if none is close: a small
// number of typing errors away, or the same name with its group left out.
func Nearest(word string, candidates []string) string {
	if word == "" {
		return ""
	}
	best, bestDistance := "", 1+len(word)/4
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates {
		if hasLastPart(strings.ToLower(c), strings.ToLower(word)) {
			return c
		}
	}
	return ""
}

// hasLastPart reports whether name ends in part after a separator, as "grid.message_ttl" does in "message_ttl".
func hasLastPart(name, part string) bool {
	rest, ok := strings.CutSuffix(name, part)
	return ok && rest != "" && strings.ContainsAny(rest[len(rest)-1:], "._-")
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b.
func distance(a, b string) int {
	// Three rows of the usual table: a swap looks two rows back.
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			replace := prev[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			cur[j] = min(replace, prev[j]+1, cur[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
