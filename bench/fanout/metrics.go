package main

import (
	"maps"
	"slices"
)

// metrics is what one measurement gave, by name. The names are those of the JSON file.
type metrics map[string]float64

const (
	cpuPerMillion   = "cpu_s_per_million_deliveries"
	deliveriesPerS  = "deliveries_per_s"
	publicationsS   = "publications_per_s"
	bytesPerEvent   = "bytes_per_delivery"
	cpuCores        = "cpu_cores"
	missedPercent   = "publications_not_delivered_one_by_one_percent"
	p50ms           = "latency_p50_ms"
	p99ms           = "latency_p99_ms"
	rssGrowthMB     = "rss_growth_mb"
	socketMemoryMB  = "kernel_socket_memory_mb"
	generatorWindow = "window_s"
	connections     = "connections"
	retriedConnects = "connects_retried"
	connectsPerS    = "connects_per_s"
	cpuPerConnect   = "cpu_us_per_connect"
	rssPerConn      = "rss_kb_per_connection"
	pssPerConn      = "pss_kb_per_connection"
	rssEarly        = "rss_kb_per_connection_at_once"
	rssTotalMB      = "rss_mb"
	socketPerConn   = "kernel_socket_kb_per_connection"
	fewCPUPercent   = "cpu_percent_of_a_core_with_100"
	idleCPUPercent  = "idle_cpu_percent_of_a_core"
	cpuCompressed   = "cpu_s_per_million_compressed"
	cpuPlain        = "cpu_s_per_million_plain"
	bytesCompressed = "bytes_per_delivery_compressed"
	compressRatio   = "compressed_over_plain"
	slowRSSGrowthMB = "rss_growth_mb_by_the_slow_one"
	slowP99Ratio    = "p99_with_slow_over_without"
	otherP99ms      = "latency_p99_ms_without_slow"
	slowEndedRight  = "slow_one_ended_right"
	slowCuts        = "slow_one_was_cut"
)

// median of each metric over repeated measurements. Medians of different metrics may stem from different ones.
func median(all []metrics) metrics {
	values := map[string][]float64{}
	for _, m := range all {
		for name, v := range m {
			values[name] = append(values[name], v)
		}
	}
	out := metrics{}
	for name := range maps.Keys(values) {
		v := values[name]
		slices.Sort(v)
		out[name] = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	return out
}
