package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Whether something is missing from a write-ahead log cannot be seen in the log alone: a crash in the middle of a write ends it just
// as a copy that broke off does, and SQLite takes what is whole. But its index, the -shm file beside it, says how many frames
// were committed. A commit is synced to the log before it is in the index, so after any crash the log has at least as many. If
// it has fewer, it was cut, or is another one. Where the index is missing, or belongs to another log, nothing can be known.

// The layout of both files: https://www.sqlite.org/walformat.html
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
	walIndexVersion = 3007000
)

// walIndex is what the index says about its log.
type walIndex struct {
	frames     uint32 // committed
	backfilled uint32 // of them, in the database file as well
	salt       [8]byte
}

func readWALIndex(path string) (x walIndex, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return walIndex{}, false
	}
	defer f.Close()
	var b [100]byte // the header twice, and the first word of the state of checkpoints
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return walIndex{}, false
	}
	native := binary.NativeEndian
	if [48]byte(b[:48]) != [48]byte(b[48:96]) || native.Uint32(b[:]) != walIndexVersion || b[12] == 0 {
		return walIndex{}, false // somebody was writing it, or nobody did
	}
	return walIndex{frames: native.Uint32(b[16:]), backfilled: native.Uint32(b[96:]), salt: [8]byte(b[32:40])}, true
}

// committedFrames counts the frames of a log up to the last commit that is whole, as SQLite does.
func committedFrames(path string) (n uint32, salt [8]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, salt, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	var header [walHeaderSize]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return 0, salt, ignoreEnd(err)
	}
	salt = [8]byte(header[16:24])
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(header[:])&1 != 0 {
		order = binary.BigEndian
	}
	sum := walSum{}.add(order, header[:24])
	if !sum.is(header[24:]) {
		return 0, salt, nil
	}
	frame := make([]byte, frameHeaderSize+binary.BigEndian.Uint32(header[8:])&0x1ffff)
	for i := uint32(1); ; i++ {
		if _, err := io.ReadFull(in, frame); err != nil {
			return n, salt, ignoreEnd(err)
		}
		sum = sum.add(order, frame[:8]).add(order, frame[frameHeaderSize:])
		if [8]byte(frame[8:16]) != salt || !sum.is(frame[16:24]) {
			return n, salt, nil // what the log held before it began anew
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			n = i // a commit
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// walSum is the running checksum of a log.
type walSum [2]uint32

func (s walSum) add(order binary.ByteOrder, b []byte) walSum {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}

func (s walSum) is(b []byte) bool {
	return s[0] == binary.BigEndian.Uint32(b) && s[1] == binary.BigEndian.Uint32(b[4:])
}

// missingFrames is how many committed frames the log of the database lacks, of how many there were; 0 if none, or if nothing can
// be known. It must be asked before SQLite opens the files, which forgets the index.
func missingFrames(database string) (missing, of uint32) {
	index, ok := readWALIndex(database + "-shm")
	if !ok || index.frames == 0 {
		return 0, 0
	}
	found, salt, err := committedFrames(database + "-wal")
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return 0, 0
	case salt == [8]byte{}: // no log, or none of a header's length
		if index.backfilled >= index.frames {
			return 0, 0
		}
	case salt != index.salt:
		return 0, 0
	}
	return index.frames - min(found, index.frames), index.frames
}
