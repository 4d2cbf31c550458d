// Serves fresh stores of the original implementation on unix sockets: one JSON request a line on standard input, one JSON
// answer a line on standard output. { "open": "memory" } → { "address" }, { "close": address } → {}. The end of its input
// ends it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
)

type request struct {
	Open  string `json:"open"`
	Close string `json:"close"`
}

type answer struct {
	Address string `json:"address,omitempty"`
	Error   string `json:"error,omitempty"`
}

func main() {
	running := map[string]func(){}
	input := bufio.NewScanner(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	for input.Scan() {
		var asked request
		if err := json.Unmarshal(input.Bytes(), &asked); err != nil {
			panic(err)
		}
		reply := answer{}
		if asked.Close != "" {
			running[asked.Close]()
			delete(running, asked.Close)
		} else if address, stop, err := open(); err != nil {
			reply.Error = err.Error()
		} else {
			running[address] = stop
			reply.Address = address
		}
		if err := output.Encode(reply); err != nil {
			panic(err)
		}
	}
	for _, stop := range running {
		stop()
	}
}

func open() (string, func(), error) {
	folder, err := os.MkdirTemp("", "interop-")
	if err != nil {
		return "", nil, err
	}
	socket := filepath.Join(folder, "s")
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return "", nil, err
	}
	served := grpc.NewServer()
	v1alpha1.RegisterStateServer(served, server.NewState(state.WrapCore(namespaced.NewState(inmem.Build))))
	go func() { _ = served.Serve(listener) }()
	return "unix:" + socket, func() {
		served.Stop()
		_ = os.RemoveAll(folder)
	}, nil
}
