// Package interop runs the suites of the original implementation against a server of ours, and offers a server of the
// original to our own suite.
package interop

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

// servers is one Node process that opens as many stores, each behind a socket, as it is asked for.
type servers struct {
	mu      sync.Mutex
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

type request struct {
	Open       string `json:"open,omitempty"`
	Close      string `json:"close,omitempty"`
	Replace    string `json:"replace,omitempty"`
	Line       string `json:"line,omitempty"`
	Soak       string `json:"soak,omitempty"`
	Kinds      []kind `json:"kinds,omitempty"`
	IDs        int    `json:"ids,omitempty"`
	Operations int    `json:"operations,omitempty"`
	Seed       uint32 `json:"seed,omitempty"`
	Views      bool   `json:"views,omitempty"`
}

type kind struct {
	Namespace string `json:"namespace"`
	Type      string `json:"type"`
}

// view is the versions of resources by their ids.
type view map[string]string

type answer struct {
	Address string `json:"address"`
	Error   string `json:"error"`
	Views   []view `json:"views"`
	Cuts    int    `json:"cuts"`
}

var started *servers

func TestMain(m *testing.M) {
	program := os.Getenv("INTEROP_SERVER")
	if program == "" {
		panic("INTEROP_SERVER must name the program that serves stores")
	}
	command := exec.Command("node", program)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		panic(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err = command.Start(); err != nil {
		panic(err)
	}
	started = &servers{command: command, input: input, output: bufio.NewReader(output)}
	code := m.Run()
	// The end of its input is the end of the program; it reports what it left open by its exit code.
	_ = input.Close()
	if err = command.Wait(); err != nil {
		_, _ = os.Stderr.WriteString("the server program failed: " + err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func (s *servers) ask(r request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got answer
	if err := json.NewEncoder(s.input).Encode(r); err != nil {
		return got, err
	}
	line, err := s.output.ReadBytes('\n')
	if err != nil {
		return got, err
	}
	if err = json.Unmarshal(line, &got); err != nil {
		return got, err
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// serve opens a fresh store of a kind; it ends with the test, or with the function before.
func serve(t *testing.T, kind string) (string, func()) {
	t.Helper()
	opened, err := started.ask(request{Open: kind})
	require.NoError(t, err)
	stop := sync.OnceFunc(func() {
		_, err := started.ask(request{Close: opened.Address})
		require.NoError(t, err)
	})
	t.Cleanup(stop)
	return opened.Address, stop
}

func connect(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	return connection
}

// dial opens a fresh store and a connection to it.
func dial(t *testing.T, kind string, options ...grpc.DialOption) (*grpc.ClientConn, func()) {
	t.Helper()
	address, stop := serve(t, kind)
	return connect(t, address, options...), stop
}

func openState(t *testing.T, kind string) state.State {
	t.Helper()
	connection, _ := dial(t, kind)
	return state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connection)))
}
