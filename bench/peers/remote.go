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
		events := flags.Int("events", 100_000, "updates")
		writers := flags.Int("writers", 64, "writes at the same time")
		rate := flags.Int("rate", 0, "writes a second; 0 for as many as possible")
		return func() (measures, error) { return watch(*address, *watchers, *events, *writers, *rate) }
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

// watch counts the events of one kind at all its watchers while they are written.
func watch(address string, watchers, events, writers, rate int) (measures, error) {
	clients, stop, err := connect(address, max(writers, watchers))
	if err != nil {
		return nil, err
	}
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	unique := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	kind := "Things" + unique + ".bench.steadystate.dev"
	var bytes, seen atomic.Int64
	var group sync.WaitGroup
	last := make(chan error, watchers)
	for watcher := range watchers {
		stream, err := clients[watcher%len(clients)].Watch(ctx, &v1alpha1.WatchRequest{
			Namespace: thingNamespace, Type: kind, Options: &v1alpha1.WatchOptions{Aggregated: true}, ApiVersion: 1,
		})
		if err != nil {
			return nil, err
		}
		if _, err = stream.Recv(); err != nil {
			return nil, err
		}
		group.Add(1)
		go func() {
			defer group.Done()
			for count := 0; count < events; {
				answer, err := stream.Recv()
				if err != nil {
					last <- err
					return
				}
				for _, event := range answer.GetEvent() {
					if event.GetEventType() == v1alpha1.EventType_ERRORED {
						last <- fmt.Errorf("the watch was ended: %s", event.GetError())
						return
					}
				}
				count += len(answer.GetEvent())
				seen.Add(int64(len(answer.GetEvent())))
				if watcher == 0 {
					for _, event := range answer.GetEvent() {
						bytes.Add(int64(event.SizeVT()))
					}
				}
			}
		}()
	}
	measured := measures{}
	if err = measured.time("deliver", watchers*events, func() error {
		start := time.Now()
		if _, err := concurrently(writers, events, func(caller, index int) error {
			if rate > 0 {
				time.Sleep(time.Until(start.Add(time.Duration(index) * time.Second / time.Duration(rate))))
			}
			made := wireThing(fmt.Sprintf("thing-%d", index), "undefined", index)
			made.Metadata.Type = kind
			_, err := clients[caller%len(clients)].Create(ctx, &v1alpha1.CreateRequest{Resource: made, Options: &v1alpha1.CreateOptions{}})
			return err
		}); err != nil {
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
	// The same events once more, as contents: what a stream gives when nothing else limits it. In batches the original exceeds
	// the largest message that its own client takes.
	if err = measured.time("contents", events, func() error {
		stream, err := clients[0].Watch(ctx, &v1alpha1.WatchRequest{
			Namespace: thingNamespace, Type: kind, Options: &v1alpha1.WatchOptions{BootstrapContents: true}, ApiVersion: 1,
		})
		for count := 0; err == nil; {
			var answer *v1alpha1.WatchResponse
			if answer, err = stream.Recv(); err != nil {
				break
			}
			for _, event := range answer.GetEvent() {
				if event.GetEventType() == v1alpha1.EventType_BOOTSTRAPPED {
					if count != events {
						return fmt.Errorf("%d of %d resources came", count, events)
					}
					return nil
				}
				count++
			}
		}
		return err
	}); err != nil {
		return nil, err
	}
	measured["bytes-per-event"] = Measure{Operations: 1, Bytes: bytes.Load() / int64(events)}
	return measured, nil
}
