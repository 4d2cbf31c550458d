package interop

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/resource/typed"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/conformance"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

const describedType = "Described.example.dev"

// described is a resource of a type that only this side knows.
type described = typed.Resource[protobuf.ResourceSpec[wrapperspb.StringValue, *wrapperspb.StringValue], describedExtension]

type describedExtension struct{}

func (describedExtension) ResourceDefinition() meta.ResourceDefinitionSpec {
	return meta.ResourceDefinitionSpec{Type: describedType, DefaultNamespace: "default"}
}

func newDescribed(id string, text string) *described {
	return typed.NewResource[protobuf.ResourceSpec[wrapperspb.StringValue, *wrapperspb.StringValue], describedExtension](
		resource.NewMetadata("default", describedType, id, resource.VersionUndefined), protobuf.NewResourceSpec(wrapperspb.String(text)))
}

func init() {
	if err := protobuf.RegisterResource(describedType, &described{}); err != nil {
		panic(err)
	}
}

// TestZeroSpec sets a spec to its zero value, whose protobuf form has no bytes, and back.
func TestZeroSpec(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	store := openState(t, "memory")
	require.NoError(t, store.Create(ctx, newDescribed("a", "first")))
	for _, text := range []string{"", "second", ""} {
		_, err := safe.StateUpdateWithConflicts(ctx, store, newDescribed("a", "").Metadata(), func(found *described) error {
			found.TypedSpec().Value.Value = text
			return nil
		})
		require.NoError(t, err, "%q", text)
		found, err := safe.StateGetByID[*described](ctx, store, "a")
		require.NoError(t, err)
		require.Equal(t, text, found.TypedSpec().Value.Value)
	}
}

// TestQueries asks a store of Go and one of ours the same, with the same resources, and expects the same.
func TestQueries(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*limit)
	defer cancel()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed)) //nolint:gosec
	stores := []state.CoreState{openState(t, "memory"), openState(t, "sqlite"), namespaced.NewState(inmem.Build)}
	values := []string{"", "a", "b", "é", "🌍", "0", "-5", "007", "5", "10", "4Gi", "4GiB", "4GB", "4 k", "1.5k", "5 mice", "1pi", "many", " 7 "}
	numbers := []string{"0", "-5", "007", "5", "10", "4Gi", "4GiB", "4GB", "4 k", "5 mice", "1pi", " 7 "}
	pick := func(from []string) string { return from[random.Intn(len(from))] }
	keys := []string{"x", "y"}
	for index := range 60 {
		made := conformance.NewPathResource("default", fmt.Sprintf("r/%02d", index))
		for _, key := range keys {
			if random.Intn(4) > 0 {
				made.Metadata().Labels().Set(key, pick(values))
			}
		}
		for _, store := range stores {
			require.NoError(t, store.Create(ctx, made.DeepCopy()))
		}
	}
	kind := conformance.NewPathResource("default", "").Metadata()
	for range 300 {
		var said []string
		var options []state.ListOption
		for range 1 + random.Intn(2) {
			var terms []resource.LabelQueryOption
			for range 1 + random.Intn(2) {
				key := pick(keys)
				var not []resource.TermOption
				if random.Intn(2) == 0 {
					not = append(not, resource.NotMatches)
				}
				operations := []func(string) resource.LabelQueryOption{
					func(string) resource.LabelQueryOption { return resource.LabelExists(key, not...) },
					func(value string) resource.LabelQueryOption { return resource.LabelEqual(key, value, not...) },
					func(value string) resource.LabelQueryOption {
						return resource.LabelIn(key, []string{value, pick(values)}, not...)
					},
					func(string) resource.LabelQueryOption { return resource.LabelIn(key, nil, not...) },
					func(value string) resource.LabelQueryOption { return resource.LabelLT(key, value, not...) },
					func(value string) resource.LabelQueryOption { return resource.LabelLTE(key, value, not...) },
					func(string) resource.LabelQueryOption { return resource.LabelLTNumeric(key, pick(numbers), not...) },
					func(string) resource.LabelQueryOption { return resource.LabelLTENumeric(key, pick(numbers), not...) },
				}
				term := operations[random.Intn(len(operations))](pick(values))
				query := resource.LabelQuery{}
				term(&query)
				said = append(said, fmt.Sprintf("%+v", query.Terms))
				terms = append(terms, term)
			}
			options = append(options, state.WithLabelQuery(terms...))
		}
		var answers []string
		for _, store := range stores {
			list, err := store.List(ctx, kind, options...)
			require.NoError(t, err, said)
			var ids []string
			for _, item := range list.Items {
				ids = append(ids, item.Metadata().ID())
			}
			answers = append(answers, strings.Join(ids, " "))
		}
		require.Equal(t, answers[2], answers[0], said)
		require.Equal(t, answers[2], answers[1], said)
	}
}

// TestLarge writes, lists and watches resources near the limit, with the windows and limits that clients of Go have.
func TestLarge(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*limit)
	defer cancel()
	store := openState(t, "memory")
	kind := resource.NewMetadata("default", describedType, "", resource.VersionUndefined)
	// Both forms of the text travel, so this is about 3.8 MB.
	text := strings.Repeat("x", 1_900_000)
	for _, id := range []string{"a", "b"} {
		require.NoError(t, store.Create(ctx, newDescribed(id, text)))
	}
	require.Error(t, store.Create(ctx, newDescribed("c", strings.Repeat("x", 1_990_000))), "it could never be sent")
	list, err := store.List(ctx, kind)
	require.NoError(t, err)
	require.Len(t, list.Items, 2)

	single := make(chan state.Event)
	require.NoError(t, store.WatchKind(ctx, kind, single, state.WithBootstrapContents(true)))
	aggregated := make(chan []state.Event)
	require.NoError(t, store.WatchKindAggregated(ctx, kind, aggregated, state.WithBootstrapContents(true)))
	var pending []state.Event
	readers := []func() state.Event{
		func() state.Event { return receive(ctx, t, single) },
		func() state.Event {
			for len(pending) == 0 {
				pending = receive(ctx, t, aggregated)
			}
			first := pending[0]
			pending = pending[1:]
			return first
		},
	}
	for _, next := range readers {
		for _, id := range []string{"a", "b"} {
			event := next()
			require.Equal(t, state.Created, event.Type, "%v", event.Error)
			require.Equal(t, id, event.Resource.Metadata().ID())
		}
		require.Equal(t, state.Bootstrapped, next().Type)
	}
	_, err = safe.StateUpdateWithConflicts(ctx, store, newDescribed("a", "").Metadata(), func(found *described) error {
		found.Metadata().Labels().Set("changed", "yes")
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, store.Destroy(ctx, newDescribed("b", "").Metadata()))
	for _, next := range readers {
		event := next()
		require.Equal(t, state.Updated, event.Type, "%v", event.Error)
		require.Nil(t, event.Old, "both values are more than a message")
		require.Equal(t, text, event.Resource.(*described).TypedSpec().Value.Value) //nolint:forcetypeassert
		require.Equal(t, state.Destroyed, next().Type)
	}
}

func receive[Item any](ctx context.Context, t *testing.T, from <-chan Item) Item {
	t.Helper()
	select {
	case item := <-from:
		return item
	case <-ctx.Done():
		require.Fail(t, "nothing came")
		panic("not reached")
	}
}

// TestReplacedStore puts another store behind the address of a watch, which must not go on as if nothing had happened.
func TestReplacedStore(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*limit)
	defer cancel()
	address, _ := serve(t, "memory")
	store := state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connect(t, address))))
	kind := resource.NewMetadata("default", describedType, "", resource.VersionUndefined)
	events := make(chan state.Event)
	require.NoError(t, store.WatchKind(ctx, kind, events))
	require.NoError(t, store.Create(ctx, newDescribed("a", "")))
	event := receive(ctx, t, events)
	require.Equal(t, state.Created, event.Type, "%v", event.Error)
	require.NotEmpty(t, event.Bookmark)

	_, err := started.ask(request{Replace: address})
	require.NoError(t, err)
	event = receive(ctx, t, events)
	require.Equal(t, state.Errored, event.Type)
	require.True(t, state.IsInvalidWatchBookmarkError(event.Error), "%v", event.Error)
	require.True(t, state.IsInvalidWatchBookmarkError(
		store.WatchKind(ctx, kind, events, state.WithKindStartFromBookmark([]byte{}))), "an empty bookmark is no place either")
}
