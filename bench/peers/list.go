package main

import (
	"context"
	"flag"
	"fmt"
	"regexp"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

func init() {
	workloads["list"] = func(flags *flag.FlagSet) func() (measures, error) {
		size := flags.Int("size", 100_000, "resources")
		times := flags.Int("times", 10, "lists of each sort")
		return func() (measures, error) { return list(*size, *times) }
	}
}

// list lists everything, one percent by a label, and one percent by the beginning of the id.
func list(size, times int) (measures, error) {
	ctx := context.Background()
	store := memoryState(0)
	for _, index := range shuffled(size) {
		if err := store.Create(ctx, newLabelled("fields", index)); err != nil {
			return nil, err
		}
	}
	kind := thingPointer(0)
	byID := 0
	prefix := regexp.MustCompile("^thing-77")
	for index := range size {
		if prefix.MatchString(thingID(index)) {
			byID++
		}
	}
	measured := measures{}
	for _, sort := range []struct {
		name     string
		options  []state.ListOption
		expected int
	}{
		{"full", nil, size},
		{"by-label", []state.ListOption{state.WithLabelQuery(resource.LabelEqual("shard", "7"))}, size / 100},
		{"by-id", []state.ListOption{state.WithIDQuery(resource.IDRegexpMatch(prefix))}, byID},
	} {
		if err := measured.time(sort.name, times, func() error {
			for range times {
				found, err := store.List(ctx, kind, sort.options...)
				if err != nil {
					return err
				}
				if len(found.Items) != sort.expected {
					return fmt.Errorf("%s found %d, not %d", sort.name, len(found.Items), sort.expected)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return measured, nil
}
