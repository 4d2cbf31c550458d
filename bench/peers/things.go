package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/typed"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
)

const (
	thingNamespace = "bench"
	thingType      = "Things.bench.steadystate.dev"
)

// thingSpec holds 512 bytes in one of two shapes: 8 fields of some 50 characters, or one long string.
type thingSpec struct {
	fields [8]string
	text   string
}

func (spec thingSpec) DeepCopy() thingSpec { return spec }

type thingExtension struct{}

func (thingExtension) ResourceDefinition() meta.ResourceDefinitionSpec {
	return meta.ResourceDefinitionSpec{Type: thingType, DefaultNamespace: thingNamespace}
}

type thing = typed.Resource[thingSpec, thingExtension]

func thingID(index int) string { return fmt.Sprintf("thing-%d", index) }

func thingPointer(index int) resource.Metadata {
	return resource.NewMetadata(thingNamespace, thingType, thingID(index), resource.VersionUndefined)
}

// newThing makes what the other side makes from the same numbers: the index names it, `revision` varies its contents.
func newThing(shape string, index, revision int) *thing {
	var spec thingSpec
	switch shape {
	case "fields":
		for field := range spec.fields {
			spec.fields[field] = pad(fmt.Sprintf("%d-%d-%d-", index, revision, field), 50)
		}
		spec.text = "a string"
	case "text":
		spec.text = pad(fmt.Sprintf("%d-%d-", index, revision), 512)
	case "small":
		spec.text = "a string"
	default:
		panic("unknown shape " + shape)
	}
	return typed.NewResource[thingSpec, thingExtension](thingPointer(index), spec)
}

// newLabelled is a thing that one label query in a hundred finds.
func newLabelled(shape string, index int) *thing {
	made := newThing(shape, index, 0)
	made.Metadata().Labels().Set("shard", fmt.Sprint(index%100))
	return made
}

func newThings(shape string, size int) []*thing {
	things := make([]*thing, size)
	for index := range things {
		things[index] = newThing(shape, index, 0)
	}
	return things
}

func pad(text string, length int) string {
	if len(text) >= length {
		return text
	}
	return text + strings.Repeat("x", length-len(text))
}

// shuffled is the same random order of 0 … size-1 every time.
func shuffled(size int) []int {
	return rand.New(rand.NewPCG(1, uint64(size))).Perm(size)
}

// memoryState is a store as programs make it; history 0 leaves the default.
func memoryState(history int) state.State {
	if history == 0 {
		return state.WrapCore(namespaced.NewState(inmem.Build))
	}
	return state.WrapCore(namespaced.NewState(func(namespace resource.Namespace) state.CoreState {
		return inmem.NewStateWithOptions(inmem.WithHistoryMaxCapacity(history))(namespace)
	}))
}
