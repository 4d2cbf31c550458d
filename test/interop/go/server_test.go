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
	Open  string `json:"open,omitempty"`
	Close string `json:"close,omitempty"`
}

type answer struct {
	Address string `json:"address"`
	Error   string `json:"error"`
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

func (s *servers) ask(r request) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewEncoder(s.input).Encode(r); err != nil {
		return "", err
	}
	line, err := s.output.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var got answer
	if err = json.Unmarshal(line, &got); err != nil {
		return "", err
	}
	if got.Error != "" {
		return "", errors.New(got.Error)
	}
	return got.Address, nil
}

// dial opens a fresh store of a kind and a connection to it; both end with the test, or the store with the function before.
func dial(t *testing.T, kind string, options ...grpc.DialOption) (*grpc.ClientConn, func()) {
	t.Helper()
	address, err := started.ask(request{Open: kind})
	require.NoError(t, err)
	connection, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	stop := sync.OnceFunc(func() {
		_, err := started.ask(request{Close: address})
		require.NoError(t, err)
	})
	t.Cleanup(func() {
		require.NoError(t, connection.Close())
		stop()
	})
	return connection, stop
}

func openState(t *testing.T, kind string) state.State {
	t.Helper()
	connection, _ := dial(t, kind)
	return state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connection)))
}
