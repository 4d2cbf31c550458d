package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
)

func init() {
	workloads["watch-fanout"] = func(flags *flag.FlagSet) func() (measures, error) {
		watchers := flags.Int("watchers", 100, "watchers")
		writes := flags.Int("writes", 10_000, "creates, without a pause")
		aggregated := flags.Bool("aggregated", false, "by batch, not by event")
		stalled := flags.Bool("stalled", false, "one watcher more, which never reads")
		return func() (measures, error) { return fanOut(*watchers, *writes, *aggregated, *stalled) }
	}
	workloads["watch-bootstrap"] = func(flags *flag.FlagSet) func() (measures, error) {
		size := flags.Int("size", 100_000, "resources")
		watchers := flags.Int("watchers", 1, "watchers, all at once")
		return func() (measures, error) { return bootstrap(*size, *watchers) }
	}
	workloads["growth"] = func(flags *flag.FlagSet) func() (measures, error) {
		size := flags.Int("size", 10_000, "resources that are there")
		operations := flags.Int("operations", 20_000, "creates, updates and deliveries that are measured")
		return func() (measures, error) { return growth(*size, *operations) }
	}
}

// reader counts the events of one watch until it has seen all writes.
type reader struct {
	single chan state.Event
	batch  chan []state.Event
}

func (r reader) read(writes int) error {
	seen := 0
	take := func(event state.Event) error {
		if event.Type == state.Errored {
			return fmt.Errorf("killed after %d events: %w", seen, event.Error)
		}
		seen++
		return nil
	}
	for seen < writes {
		if r.single != nil {
			if err := take(<-r.single); err != nil {
				return err
			}
			continue
		}
		for _, event := range <-r.batch {
			if err := take(event); err != nil {
				return err
			}
		}
	}
	return nil
}

func openReader(ctx context.Context, store state.State, aggregated bool, options ...state.WatchKindOption) (reader, error) {
	if aggregated {
		r := reader{batch: make(chan []state.Event)}
		return r, store.WatchKindAggregated(ctx, thingPointer(0), r.batch, options...)
	}
	r := reader{single: make(chan state.Event)}
	return r, store.WatchKind(ctx, thingPointer(0), r.single, options...)
}

// fanOut delivers every write to every watcher. The history holds them all: with the usual hundred it would end the watchers.
func fanOut(watchers, writes int, aggregated, stalled bool) (measures, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memoryState(writes + 1_000)
	things := newThings("small", writes)
	readers := make([]reader, watchers)
	for index := range readers {
		var err error
		if readers[index], err = openReader(ctx, store, aggregated); err != nil {
			return nil, err
		}
	}
	if stalled {
		if _, err := openReader(ctx, store, aggregated); err != nil {
			return nil, err
		}
	}
	measured := measures{}
	return measured, measured.time("deliveries", watchers*writes, func() error {
		var done sync.WaitGroup
		failures := make([]error, watchers)
		for index := range readers {
			done.Go(func() { failures[index] = readers[index].read(writes) })
		}
		start := time.Now()
		for _, made := range things {
			if err := store.Create(ctx, made); err != nil {
				return err
			}
		}
		measured["writes"] = Measure{Operations: writes, Nanoseconds: time.Since(start).Nanoseconds()}
		done.Wait()
		for _, err := range failures {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// bootstrap gives all contents to watchers that come at once.
func bootstrap(size, watchers int) (measures, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memoryState(0)
	for _, index := range shuffled(size) {
		if err := store.Create(ctx, newLabelled("fields", index)); err != nil {
			return nil, err
		}
	}
	measured := measures{}
	for _, part := range []string{"first", "later"} {
		if err := measured.time(part, watchers*(size+1), func() error {
			var done sync.WaitGroup
			failures := make([]error, watchers)
			for index := range watchers {
				done.Go(func() {
					r, err := openReader(ctx, store, true, state.WithBootstrapContents(true))
					if err == nil {
						err = r.read(size + 1)
					}
					failures[index] = err
				})
			}
			done.Wait()
			for _, err := range failures {
				if err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return measured, nil
}

// growth measures single steps beside `size` resources of the kind.
func growth(size, operations int) (measures, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memoryState(operations + 1_000)
	for _, index := range shuffled(size) {
		if err := store.Create(ctx, newThing("small", index, 0)); err != nil {
			return nil, err
		}
	}
	added := make([]*thing, operations)
	for index := range added {
		added[index] = newThing("small", size+index, 0)
	}
	write := func(store func(context.Context, *thing) error) func() error {
		return func() error {
			for _, made := range added {
				if err := store(ctx, made); err != nil {
					return err
				}
			}
			return nil
		}
	}
	create := write(func(ctx context.Context, made *thing) error { return store.Create(ctx, made) })
	update := write(func(ctx context.Context, made *thing) error { return store.Update(ctx, made) })
	measured := measures{}
	if err := measured.time("create", operations, create); err != nil {
		return nil, err
	}
	if err := measured.time("update", operations, update); err != nil {
		return nil, err
	}
	watch, err := openReader(ctx, store, false)
	if err != nil {
		return nil, err
	}
	return measured, measured.time("delivery", operations, func() error {
		failed := make(chan error, 1)
		go func() { failed <- watch.read(operations) }()
		if err := update(); err != nil {
			return err
		}
		return <-failed
	})
}
