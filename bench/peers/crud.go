package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
)

func init() {
	workloads["mem-crud"] = func(flags *flag.FlagSet) func() (measures, error) {
		size := flags.Int("size", 100_000, "resources")
		shape := flags.String("shape", "fields", "fields or text")
		return func() (measures, error) {
			if err := crud(min(*size, 100_000), *shape, measures{}); err != nil {
				return nil, err
			}
			measured := measures{}
			return measured, crud(*size, *shape, measured)
		}
	}
	workloads["mem-per-resource"] = func(flags *flag.FlagSet) func() (measures, error) {
		size := flags.Int("size", 100_000, "resources")
		shape := flags.String("shape", "fields", "fields or text")
		return func() (measures, error) { return perResource(*size, *shape) }
	}
}

const hotKeys = 1_000

// crud creates, reads, updates and destroys every resource, and then does all of it mixed.
func crud(size int, shape string, measured measures) error {
	ctx := context.Background()
	store := memoryState(0)
	things := newThings(shape, size)
	updates := make([]*thing, size)
	pointers := make([]resource.Metadata, size)
	one, err := resource.ParseVersion("1")
	if err != nil {
		return err
	}
	for index := range updates {
		updates[index] = newThing(shape, index, 1)
		updates[index].Metadata().SetVersion(one)
		pointers[index] = thingPointer(index)
	}
	order := shuffled(size)
	get := func(index int) error {
		found, err := store.Get(ctx, pointers[index])
		if err != nil {
			return err
		}
		if found.Metadata().ID() != pointers[index].ID() {
			return fmt.Errorf("found another: %v", found.Metadata())
		}
		return nil
	}

	if err = measured.time("create", size, func() error {
		for _, made := range things {
			if err := store.Create(ctx, made); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for name, keys := range map[string]int{"get-hot": min(hotKeys, size), "get-random": size} {
		if err = measured.time(name, size, func() error {
			for index := range order {
				if err := get(order[index%keys]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if err = measured.time("update", size, func() error {
		for _, index := range order {
			if err := store.Update(ctx, updates[index]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	list, err := store.List(ctx, pointers[0])
	if err != nil {
		return err
	}
	if len(list.Items) != size || list.Items[0].Metadata().Version().String() != "2" {
		return fmt.Errorf("%d resources after the updates, the first at version %v", len(list.Items), list.Items[0].Metadata().Version())
	}
	list = resource.List{}
	if err = measured.time("destroy", size, func() error {
		for _, index := range order {
			if err := store.Destroy(ctx, pointers[index]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return mixed(store, things, updates, pointers, order, measured)
}

// mixed walks over the keys again: a step creates one, reads five times, updates what it created, and every second one
// destroys what the step before created.
func mixed(store state.State, things, updates []*thing, pointers []resource.Metadata, order []int, measured measures) error {
	ctx := context.Background()
	operations := 0
	present := 0
	err := measured.time("mixed", 0, func() error {
		for step, index := range order {
			if err := store.Create(ctx, things[index]); err != nil {
				return err
			}
			operations++
			present++
			for read := range 5 {
				// Those of odd steps are there to stay; before the first of them there is the one of this step.
				key := index
				if step > 0 {
					key = order[(step*(7+2*read))%((step+1)>>1)*2+1]
				}
				found, err := store.Get(ctx, pointers[key])
				if err != nil {
					return err
				}
				if found.Metadata().ID() != pointers[key].ID() {
					return fmt.Errorf("found another: %v", found.Metadata())
				}
				operations++
			}
			updates[index].Metadata().SetVersion(things[index].Metadata().Version())
			if err := store.Update(ctx, updates[index]); err != nil {
				return err
			}
			operations++
			if step%2 == 1 {
				if err := store.Destroy(ctx, pointers[order[step-1]]); err != nil {
					return err
				}
				operations++
				present--
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	list, err := store.List(ctx, pointers[0])
	if err != nil {
		return err
	}
	if len(list.Items) != present {
		return fmt.Errorf("%d resources are left, not %d", len(list.Items), present)
	}
	measure := measured["mixed"]
	measure.Operations = operations
	measured["mixed"] = measure
	return nil
}

func perResource(size int, shape string) (measures, error) {
	ctx := context.Background()
	store := memoryState(0)
	before := heapBytes()
	for index := range size {
		if err := store.Create(ctx, newThing(shape, index, 0)); err != nil {
			return nil, err
		}
	}
	bytes := heapBytes() - before
	found, err := store.Get(ctx, thingPointer(size-1))
	if err != nil {
		return nil, err
	}
	if found.Metadata().ID() != thingID(size-1) {
		return nil, fmt.Errorf("found %s", found.Metadata().ID())
	}
	return measures{"resource": {Operations: size, Bytes: bytes / int64(size)}}, nil
}
