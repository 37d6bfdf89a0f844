package server

import (
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/freshet-io/freshet/internal/memory"
)

// budget is what the process does with the memory that it may use. Documents get a quarter. The rest is for what comes and goes:
// publications that are being read and compared, connections, and garbage that was not collected yet.
type budget struct {
	held   *memory.Account   // documents, in the grid and in the router
	kept   int               // of it, what can be made again and nobody follows
	work   *memory.Semaphore // bytes of long documents that are being read and compared
	bodies *memory.Semaphore // bytes of long publications that are under way
}

const (
	documentsPart = 4

	workWait   = 5 * time.Second
	workQueue  = 256
	minWork    = 8 << 20 // two documents of 4 MiB
	workPart   = 128     // reading and comparing takes up to thirty times the documents, and so a quarter of all
	minBodies  = 16 << 20
	bodiesPart = 16
	bodyQueue  = 1024
	minKept    = 8 << 20
	keptPart   = 8 // of what documents may hold
)

// newBudget shares out so many bytes, 0 if nobody knows how many, on so many processors. Documents get what the operator
// chose, unless that is 0.
func newBudget(mayUse, documents int64, processors int) budget {
	if documents == 0 {
		documents = mayUse / documentsPart
	}
	b := budget{
		held: memory.NewAccount(documents),
		work: memory.NewSemaphore(memory.Limits{
			Bytes: max(minWork, mayUse/workPart),
			// Half of the processors at most: short publications of others must not wait for one.
			Holders: max(1, processors/2), Wait: workWait, Queue: workQueue,
		}),
		bodies: memory.NewSemaphore(memory.Limits{Bytes: max(minBodies, mayUse/bodiesPart), Wait: workWait, Queue: bodyQueue}),
	}
	if documents > 0 {
		b.kept = int(max(minKept, documents/keptPart))
	}
	return b
}

// Streams of HTTP/2 get an eighth, so that everything else has room beside them; where nobody knows how much there is, enough for some
// ten thousand.
const (
	streamPart  = 8
	usualMemory = 1 << 30
)

// streamRoom is what clients may hold by streams of HTTP/2, in bytes.
func streamRoom(mayUse int64) int64 {
	if mayUse == 0 {
		mayUse = usualMemory
	}
	return mayUse / streamPart
}

// openBudget shares out what the operating system grants.
func (p *parts) openBudget(root fs.FS) {
	p.budget = newBudget(mayUse(root), int64(p.settings.Grid.Memory), runtime.GOMAXPROCS(0))
}

// mayUse returns how much memory the process may use: that of its control group, or of the machine. 0 if neither tells.
func mayUse(root fs.FS) int64 {
	machine := machineMemory(root)
	if limit, ok := cgroupMemory(root); ok && (machine == 0 || limit < machine) {
		return limit
	}
	return machine
}

func machineMemory(root fs.FS) int64 {
	raw, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0 // another operating system
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
