// Package loglimit keeps strangers from filling the log: lines that anybody can cause are written at most so many times a second,
// and then one line says how many were left out. It decides nothing else about them.
//
// A Logger is safe for concurrent use. It has a timer while lines are being left out, and otherwise nothing that runs.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Logger writes a limited number of lines a second.
type Logger struct {
	// Static after New.
	log       *slog.Logger
	about     string
	perSecond int

	// Guarded by mu.
	mu      sync.Mutex
	began   time.Time // the second that is being counted
	lines   int       // in it
	leftOut int       // since the last line that told
	timer   *time.Timer
}

// New returns a Logger that writes at most perSecond lines a second. about names them all in the line that says how many were left out.
func New(log *slog.Logger, about string, perSecond int) *Logger {
	return &Logger{log: log, about: about, perSecond: perSecond}
}

// Log writes a line, or counts it among those left out.
func (l *Logger) Log(level slog.Level, msg string, args ...any) {
	if l.log.Enabled(context.Background(), level) && l.mayWrite() {
		l.log.Log(context.Background(), level, msg, args...)
	}
}

func (l *Logger) mayWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.began) >= time.Second {
		l.began, l.lines = now, 0
	}
	if l.lines < l.perSecond {
		l.lines++
		return true
	}
	l.leftOut++
	if l.timer == nil {
		l.timer = time.AfterFunc(l.began.Add(time.Second).Sub(now), l.tell)
	}
	return false
}

// tell says how many lines were left out.
func (l *Logger) tell() {
	l.mu.Lock()
	n := l.leftOut
	l.leftOut, l.timer = 0, nil
	l.mu.Unlock()
	if n > 0 {
		l.log.Info("log lines left out", "about", l.about, "count", n)
	}
}

// Close says at once how many lines were left out. The Logger can be used afterwards.
func (l *Logger) Close() {
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.tell()
}
