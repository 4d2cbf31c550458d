package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/impl/store"
	"github.com/cosi-project/runtime/pkg/state/impl/store/bolt"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func init() {
	if err := protobuf.RegisterResource(thingType, &thing{}); err != nil {
		panic(err)
	}
	workloads["durable-create"] = func(flags *flag.FlagSet) func() (measures, error) {
		writers := flags.Int("writers", 1, "how many create at once")
		size := flags.Int("size", 2_000, "resources")
		etcd := flags.String("etcd", "", "client URL of an etcd; without it a store in bbolt is measured")
		return func() (measures, error) {
			if *etcd != "" {
				return createInEtcd(*etcd, *writers, *size)
			}
			return createInBolt(*writers, *size)
		}
	}
	workloads["durable-open"] = func(flags *flag.FlagSet) func() (measures, error) {
		file := flags.String("file", "", "a bbolt file; made when it is missing")
		size := flags.Int("size", 1_000_000, "resources that it has")
		return func() (measures, error) { return openBolt(*file, *size) }
	}
}

// MarshalProto is as small and fast as a spec's own encoding can be.
func (spec thingSpec) MarshalProto() ([]byte, error) {
	var bytes []byte
	for _, text := range append(spec.fields[:], spec.text) {
		bytes = binary.AppendUvarint(bytes, uint64(len(text)))
		bytes = append(bytes, text...)
	}
	return bytes, nil
}

func (spec *thingSpec) UnmarshalProto(bytes []byte) error {
	for field := range len(spec.fields) + 1 {
		length, read := binary.Uvarint(bytes)
		if read <= 0 || uint64(len(bytes)-read) < length {
			return errors.New("a field is cut off")
		}
		text := string(bytes[read : read+int(length)])
		if field < len(spec.fields) {
			spec.fields[field] = text
		} else {
			spec.text = text
		}
		bytes = bytes[read+int(length):]
	}
	return nil
}

func openBacking(file string, options *bbolt.Options) (*bolt.BackingStore, state.State, error) {
	backing, err := bolt.NewBackingStore(func() (*bbolt.DB, error) { return bbolt.Open(file, 0o600, options) }, store.ProtobufMarshaler{})
	if err != nil {
		return nil, nil, err
	}
	return backing, state.WrapCore(namespaced.NewState(func(namespace resource.Namespace) state.CoreState {
		return inmem.NewStateWithOptions(inmem.WithBackingStore(backing.WithNamespace(namespace)))(namespace)
	})), nil
}

func createInBolt(writers, size int) (measures, error) {
	folder, err := os.MkdirTemp("", "steadystate-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	backing, opened, err := openBacking(filepath.Join(folder, "state.db"), nil)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	things := newThings("fields", size)
	ctx := context.Background()
	measured, err := createAll(writers, size, func(index int) error { return opened.Create(ctx, things[index]) })
	if err != nil {
		return nil, err
	}
	list, err := opened.List(ctx, thingPointer(0))
	if err != nil {
		return nil, err
	}
	if len(list.Items) != size {
		return nil, fmt.Errorf("%d resources were created", len(list.Items))
	}
	return measured, nil
}

func createInEtcd(url string, writers, size int) (measures, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx := context.Background()
	if _, err = client.Delete(ctx, "bench/", clientv3.WithPrefix()); err != nil {
		return nil, err
	}
	values := make([]string, size)
	for index, made := range newThings("fields", size) {
		bytes, err := made.TypedSpec().MarshalProto()
		if err != nil {
			return nil, err
		}
		values[index] = string(bytes)
	}
	measured, err := createAll(writers, size, func(index int) error {
		// A create, as every store on top of etcd makes one.
		key := "bench/" + thingID(index)
		answer, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, values[index])).Commit()
		if err == nil && !answer.Succeeded {
			err = fmt.Errorf("%s is there already", key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	counted, err := client.Get(ctx, "bench/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return nil, err
	}
	if counted.Count != int64(size) {
		return nil, fmt.Errorf("%d keys were created", counted.Count)
	}
	return measured, nil
}

// createAll has writers that take the next one as soon as the last is acknowledged, and keeps how long each waited.
func createAll(writers, size int, create func(index int) error) (measures, error) {
	measured := measures{}
	latencies := make([]int64, size)
	err := measured.time("create", size, func() error {
		var next atomic.Int64
		var group sync.WaitGroup
		failed := make(chan error, writers)
		for range writers {
			group.Go(func() {
				for {
					index := int(next.Add(1)) - 1
					if index >= size {
						return
					}
					start := time.Now()
					if err := create(index); err != nil {
						failed <- err
						return
					}
					latencies[index] = time.Since(start).Nanoseconds()
				}
			})
		}
		group.Wait()
		close(failed)
		return <-failed
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(latencies)
	measured["wait-p50"] = Measure{Operations: 1, Nanoseconds: latencies[size/2]}
	measured["wait-p99"] = Measure{Operations: 1, Nanoseconds: latencies[size*99/100]}
	return measured, nil
}

// openBolt opens a store that was filled before, up to the first get and to a count of all.
func openBolt(file string, size int) (measures, error) {
	ctx := context.Background()
	if _, err := os.Stat(file); err != nil {
		if err = fillBolt(file, size); err != nil {
			return nil, err
		}
	}
	measured := measures{}
	var opened state.State
	start := time.Now()
	since := func(part string) {
		measured[part] = Measure{Operations: 1, Nanoseconds: time.Since(start).Nanoseconds()}
	}
	backing, opened, err := openBacking(file, nil)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	if _, err = opened.Get(ctx, thingPointer(size/2)); err != nil {
		return nil, err
	}
	since("first-get")
	// It reads everything before it answers anything.
	since("ready")
	list, err := opened.List(ctx, thingPointer(0))
	if err != nil {
		return nil, err
	}
	since("first-list")
	if len(list.Items) != size {
		return nil, fmt.Errorf("%d resources were found", len(list.Items))
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	measured["file"] = Measure{Operations: size, Bytes: info.Size()}
	list = resource.List{}
	measured["heap"] = Measure{Operations: size, Bytes: heapBytes()}
	runtime.KeepAlive(opened)
	return measured, nil
}

// fillBolt writes many in one transaction, as nobody would wait for a million syncs.
func fillBolt(file string, size int) error {
	database, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer database.Close()
	one, err := resource.ParseVersion("1")
	if err != nil {
		return err
	}
	for from := 0; from < size; from += 50_000 {
		if err = database.Update(func(transaction *bbolt.Tx) error {
			namespace, err := transaction.CreateBucketIfNotExists([]byte(thingNamespace))
			if err != nil {
				return err
			}
			bucket, err := namespace.CreateBucketIfNotExists([]byte(thingType))
			if err != nil {
				return err
			}
			for index := from; index < min(size, from+50_000); index++ {
				made := newThing("fields", index, 0)
				made.Metadata().SetVersion(one)
				bytes, err := store.ProtobufMarshaler{}.MarshalResource(made)
				if err != nil {
					return err
				}
				if err = bucket.Put([]byte(thingID(index)), bytes); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return database.Sync()
}
