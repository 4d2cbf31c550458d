package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/conformance"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

// TestSoak lets a client of Go and one of ours write and watch the same kinds, each over a steady and an unsteady line. In the
// end everybody has seen what the store holds.
func TestSoak(t *testing.T) {
	const ids, operations, seed = 40, 4_000, 20_261_201
	kinds := []kind{{"soak-one", conformance.PathResourceType}, {"soak-two", conformance.PathResourceType}}
	for _, store := range []string{"memory", "sqlite"} {
		t.Run(store, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			address, _ := serve(t, store)
			line, err := started.ask(request{Line: address, Seed: seed})
			require.NoError(t, err)
			t.Cleanup(func() {
				_, err := started.ask(request{Close: line.Address})
				require.NoError(t, err)
			})
			_, err = started.ask(request{Soak: address, Line: line.Address, Kinds: kinds, IDs: ids, Operations: operations, Seed: seed})
			require.NoError(t, err)

			direct := state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connect(t, address))))
			unsteady := state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connect(t, line.Address))))
			views := make([]view, 2*len(kinds))
			var group sync.WaitGroup
			for index, from := range []state.State{direct, direct, unsteady, unsteady} {
				group.Go(func() { views[index] = follow(ctx, t, from, kinds[index%len(kinds)]) })
			}

			random := rand.New(rand.NewPCG(seed, 1))
			for operation := range operations {
				of := kinds[random.IntN(len(kinds))]
				made := conformance.NewPathResource(of.Namespace, fmt.Sprintf("id-%d", random.IntN(ids)))
				what := random.Float64()
				switch {
				case what < 0.4:
					err = direct.Create(ctx, made)
				case what < 0.8:
					_, err = direct.UpdateWithConflicts(ctx, made.Metadata(), func(found resource.Resource) error {
						found.Metadata().Labels().Set("by", fmt.Sprint(operation))
						return nil
					})
				default:
					err = direct.Destroy(ctx, made.Metadata())
				}
				if err != nil && !state.IsConflictError(err) && !state.IsNotFoundError(err) {
					require.NoError(t, err)
				}
			}
			// Ours is done too once nothing has changed for a while; it may take longer than we did.
			last := ""
			require.Eventually(t, func() bool {
				now := fmt.Sprint(stored(ctx, t, direct, kinds[0]), stored(ctx, t, direct, kinds[1]))
				same := now == last
				last = now
				return same
			}, time.Minute, 500*time.Millisecond)
			for _, of := range kinds {
				require.NoError(t, direct.Create(ctx, conformance.NewPathResource(of.Namespace, "end")))
			}
			group.Wait()
			ours, err := started.ask(request{Views: true})
			require.NoError(t, err)
			require.Len(t, ours.Views, 2*len(kinds))
			for index := range views {
				held := stored(ctx, t, direct, kinds[index%len(kinds)])
				require.NotEmpty(t, held)
				require.Equal(t, held, views[index], "what Go saw, %d", index)
				require.Equal(t, held, ours.Views[index], "what ours saw, %d", index)
			}
			require.NotZero(t, ours.Cuts, "the line never broke")
		})
	}
}

// follow watches a kind until the resource "end" is there; a watch that fails is begun again.
func follow(ctx context.Context, t *testing.T, from state.State, of kind) view {
	for ctx.Err() == nil {
		seen := view{}
		events := make(chan state.Event)
		attempt, stop := context.WithCancel(ctx)
		err := from.WatchKind(attempt, resource.NewMetadata(of.Namespace, of.Type, "", resource.VersionUndefined), events, state.WithBootstrapContents(true))
		for err == nil {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case event := <-events:
				switch event.Type {
				case state.Errored:
					err = event.Error
				case state.Bootstrapped, state.Noop:
				case state.Destroyed:
					delete(seen, event.Resource.Metadata().ID())
				case state.Created, state.Updated:
					if event.Resource.Metadata().ID() == "end" {
						stop()
						return seen
					}
					seen[event.Resource.Metadata().ID()] = event.Resource.Metadata().Version().String()
				}
			}
		}
		stop()
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the end was not seen in time")
	return nil
}

func stored(ctx context.Context, t *testing.T, from state.State, of kind) view {
	list, err := from.List(ctx, resource.NewMetadata(of.Namespace, of.Type, "", resource.VersionUndefined))
	require.NoError(t, err)
	held := view{}
	for _, item := range list.Items {
		if item.Metadata().ID() != "end" {
			held[item.Metadata().ID()] = item.Metadata().Version().String()
		}
	}
	return held
}
