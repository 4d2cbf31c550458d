package main

import (
	"runtime"
	"syscall"
	"time"
)

// Measure is what one part of a workload took.
type Measure struct {
	Operations  int   `json:"operations"`
	Nanoseconds int64 `json:"nanoseconds"`
	// CPUNanoseconds is user and system time of the whole process, the collector's too.
	CPUNanoseconds int64 `json:"cpuNanoseconds"`
	// Bytes is set instead of a time by workloads that measure memory.
	Bytes int64 `json:"bytes,omitempty"`
}

type measures map[string]Measure

// time measures one part. What the parts before left behind is collected first, so that each pays for its own.
func (m measures) time(name string, operations int, part func() error) error {
	runtime.GC()
	cpu := cpuTime()
	start := time.Now()
	if err := part(); err != nil {
		return err
	}
	m[name] = Measure{Operations: operations, Nanoseconds: time.Since(start).Nanoseconds(), CPUNanoseconds: cpuTime() - cpu}
	return nil
}

func cpuTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// heapBytes is what is in use after a collection.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
