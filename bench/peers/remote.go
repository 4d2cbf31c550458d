package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
)

func init() {
	// Serves the in-memory state until its input ends; the address is a unix socket.
	workloads["serve"] = func(flags *flag.FlagSet) func() (measures, error) {
		socket := flags.String("socket", "", "path of the socket")
		return func() (measures, error) { return measures{}, serve(*socket) }
	}
	workloads["remote-unary"] = func(flags *flag.FlagSet) func() (measures, error) {
		address := flags.String("address", "", "unix:PATH")
		callers := flags.Int("callers", 1, "calls at the same time")
		operations := flags.Int("operations", 10_000, "calls in all, of each method")
		return func() (measures, error) { return unary(*address, *callers, *operations) }
	}
	workloads["remote-watch"] = func(flags *flag.FlagSet) func() (measures, error) {
		address := flags.String("address", "", "unix:PATH")
		watchers := flags.Int("watchers", 1, "watches of one kind")
		events := flags.Int("events", 100_000, "writes")
		resources := flags.Int("resources", 0, "how many are updated, over and over; 0: each write creates one")
		writers := flags.Int("writers", 64, "writes at the same time")
		rate := flags.Int("rate", 0, "writes a second; 0 for as many as possible")
		return func() (measures, error) { return watch(*address, *watchers, *events, *resources, *writers, *rate) }
	}
}

// servedHistory is so long that the store does not end watches that lag, as it does with its default.
const servedHistory = 200_000

func serve(socket string) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	served := grpc.NewServer()
	v1alpha1.RegisterStateServer(served, server.NewState(memoryState(servedHistory)))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		served.Stop()
	}()
	fmt.Println("ready")
	return served.Serve(listener)
}

// connect dials once for each 256 callers, so that what is measured is the server and not one client's connection.
func connect(address string, callers int) ([]v1alpha1.StateClient, func(), error) {
	var clients []v1alpha1.StateClient
	var connections []*grpc.ClientConn
	stop := func() {
		for _, connection := range connections {
			_ = connection.Close()
		}
	}
	for range 1 + (callers-1)/256 {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			stop()
			return nil, nil, err
		}
		connections = append(connections, connection)
		clients = append(clients, v1alpha1.NewStateClient(connection))
	}
	return clients, stop, nil
}

// opaqueType is a type that nobody has registered.
const opaqueType = "Opaques.bench.steadystate.dev"

// wireThing is an opaque spec of 512 bytes, as a client of an unknown type sends it.
func wireThing(id, version string, revision int) *v1alpha1.Resource {
	return &v1alpha1.Resource{
		Metadata: &v1alpha1.Metadata{Namespace: thingNamespace, Type: opaqueType, Id: id, Version: version, Phase: "running"},
		Spec:     &v1alpha1.Spec{YamlSpec: `{"text":"` + pad(fmt.Sprint(revision), 500) + `"}`},
	}
}

// callers runs operations 0 … count-1 by so many at a time, and gives what each took.
func concurrently(callers, count int, operation func(caller, index int) error) ([]time.Duration, error) {
	took := make([]time.Duration, count)
	var next atomic.Int64
	var group sync.WaitGroup
	failed := make(chan error, callers)
	for caller := range callers {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				index := int(next.Add(1)) - 1
				if index >= count {
					return
				}
				start := time.Now()
				if err := operation(caller, index); err != nil {
					failed <- err
					return
				}
				took[index] = time.Since(start)
			}
		}()
	}
	group.Wait()
	close(failed)
	slices.Sort(took)
	return took, <-failed
}

func percentile(sorted []time.Duration, share float64) Measure {
	return Measure{Operations: 1, Nanoseconds: sorted[int(share*float64(len(sorted)-1))].Nanoseconds()}
}

func unary(address string, callers, operations int) (measures, error) {
	clients, stop, err := connect(address, callers)
	if err != nil {
		return nil, err
	}
	defer stop()
	ctx := context.Background()
	measured := measures{}
	unique := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	id := func(index int) string { return fmt.Sprintf("thing-%s-%d", unique, index) }
	create := func(caller, index int) error {
		answer, err := clients[caller%len(clients)].Create(ctx, &v1alpha1.CreateRequest{Resource: wireThing(id(index), "undefined", index), Options: &v1alpha1.CreateOptions{}})
		if err == nil && answer.GetResource().GetMetadata().GetId() != id(index) {
			return errors.New("another resource was answered")
		}
		return err
	}
	get := func(caller, index int) error {
		answer, err := clients[caller%len(clients)].Get(ctx, &v1alpha1.GetRequest{Namespace: thingNamespace, Type: opaqueType, Id: id(index)})
		if err == nil && len(answer.GetResource().GetSpec().GetYamlSpec()) < 500 {
			return errors.New("another spec was answered")
		}
		return err
	}
	for _, part := range []struct {
		name      string
		operation func(caller, index int) error
	}{{"create", create}, {"get", get}} {
		var took []time.Duration
		if err = measured.time(part.name, operations, func() (err error) {
			took, err = concurrently(callers, operations, part.operation)
			return err
		}); err != nil {
			return nil, err
		}
		measured[part.name+"-p50"] = percentile(took, 0.5)
		measured[part.name+"-p99"] = percentile(took, 0.99)
	}
	return measured, nil
}

// written makes the writes of a workload: creates, or updates of resources that were made before.
type written struct {
	clients   []v1alpha1.StateClient
	kind      string
	resources int
	writers   int
	// what each writer updates in turn, as the server answered it last
	mine [][]*v1alpha1.Resource
}

func (w *written) create(ctx context.Context, caller int, id string) (*v1alpha1.Resource, error) {
	made := wireThing(id, "undefined", 0)
	made.Metadata.Type = w.kind
	answer, err := w.clients[caller%len(w.clients)].Create(ctx, &v1alpha1.CreateRequest{Resource: made, Options: &v1alpha1.CreateOptions{}})
	return answer.GetResource(), err
}

func (w *written) prepare(ctx context.Context) error {
	w.mine = make([][]*v1alpha1.Resource, w.writers)
	for index := range w.resources {
		made, err := w.create(ctx, 0, fmt.Sprintf("thing-%d", index))
		if err != nil {
			return err
		}
		w.mine[index%w.writers] = append(w.mine[index%w.writers], made)
	}
	return nil
}

func (w *written) write(ctx context.Context, caller, index int) error {
	if w.resources == 0 {
		_, err := w.create(ctx, caller, fmt.Sprintf("thing-%d", index))
		return err
	}
	mine := &w.mine[caller][index%len(w.mine[caller])]
	changed := wireThing((*mine).GetMetadata().GetId(), "", index)
	changed.Metadata = (*mine).GetMetadata()
	answer, err := w.clients[caller%len(w.clients)].Update(ctx, &v1alpha1.UpdateRequest{NewResource: changed, Options: &v1alpha1.UpdateOptions{}})
	if err == nil {
		*mine = answer.GetResource()
	}
	return err
}

// lastID is created behind all writes: who sees it has seen all that there was.
const lastID = "zzz-last"

// watch counts the events of one kind at all its watchers while they are written, over the wire on both sides.
func watch(address string, watchers, events, resources, writers, rate int) (measures, error) {
	clients, stop, err := connect(address, max(writers, watchers))
	if err != nil {
		return nil, err
	}
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	unique := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	source := &written{clients: clients, kind: "Things" + unique + ".bench.steadystate.dev", resources: resources, writers: writers}
	if err = source.prepare(ctx); err != nil {
		return nil, err
	}
	var bytes, seen atomic.Int64
	var group sync.WaitGroup
	last := make(chan error, watchers)
	for watcher := range watchers {
		stream, err := clients[watcher%len(clients)].Watch(ctx, &v1alpha1.WatchRequest{
			Namespace: thingNamespace, Type: source.kind, Options: &v1alpha1.WatchOptions{Aggregated: true}, ApiVersion: 1,
		})
		if err != nil {
			return nil, err
		}
		if _, err = stream.Recv(); err != nil {
			return nil, err
		}
		group.Go(func() {
			count, size, err := drain(stream.Recv, lastID, watcher == 0)
			if err == nil && count != events {
				err = fmt.Errorf("%d of %d events came", count, events)
			}
			seen.Add(int64(count))
			bytes.Add(int64(size))
			if err != nil {
				last <- err
			}
		})
	}
	measured := measures{}
	if err = measured.time("deliver", watchers*events, func() error {
		start := time.Now()
		if _, err := concurrently(writers, events, func(caller, index int) error {
			if rate > 0 {
				time.Sleep(time.Until(start.Add(time.Duration(index) * time.Second / time.Duration(rate))))
			}
			return source.write(ctx, caller, index)
		}); err != nil {
			return err
		}
		if _, err := source.create(ctx, 0, lastID); err != nil {
			return err
		}
		group.Wait()
		select {
		case err := <-last:
			return err
		default:
			return nil
		}
	}); err != nil {
		return nil, fmt.Errorf("after %d events: %w", seen.Load(), err)
	}
	// The same events once more: what a stream gives when nothing else limits it. In batches the original exceeds the largest
	// message that its own client takes.
	again, name, expected := &v1alpha1.WatchOptions{BootstrapContents: true}, "contents", events
	if resources > 0 {
		again, name = &v1alpha1.WatchOptions{TailEvents: int32(events + 1)}, "replay"
	}
	if err = measured.time(name, expected, func() error {
		stream, err := clients[0].Watch(ctx, &v1alpha1.WatchRequest{
			Namespace: thingNamespace, Type: source.kind, Options: again, ApiVersion: 1,
		})
		if err != nil {
			return err
		}
		if count, _, err := drain(stream.Recv, lastID, false); err != nil || count != expected {
			return fmt.Errorf("%d of %d events came: %w", count, expected, err)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	measured["bytes-per-event"] = Measure{Operations: 1, Bytes: bytes.Load() / int64(events)}
	return measured, nil
}

// drain counts events until a resource of that name comes, and their bytes, if asked.
func drain(receive func() (*v1alpha1.WatchResponse, error), until string, weigh bool) (count, size int, err error) {
	for {
		answer, err := receive()
		if err != nil {
			return count, size, err
		}
		for _, event := range answer.GetEvent() {
			if event.GetEventType() == v1alpha1.EventType_ERRORED {
				return count, size, fmt.Errorf("the watch was ended: %s", event.GetError())
			}
			if event.GetResource().GetMetadata().GetId() == until {
				return count, size, nil
			}
			count++
			if weigh {
				size += event.SizeVT()
			}
		}
	}
}
