package interop

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

// TestExample runs the program that docs/wire.md shows.
func TestExample(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*limit)
	defer cancel()
	address, _ := serve(t, "memory")
	store := state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connect(t, address))))
	definition, err := meta.NewResourceDefinition(meta.ResourceDefinitionSpec{Type: "Rooms.example.dev", DefaultNamespace: "default"})
	require.NoError(t, err)
	require.NoError(t, store.Create(ctx, definition))
	output, err := exec.CommandContext(ctx, "go", "run", "./example", address).CombinedOutput()
	require.NoError(t, err, string(output))
	require.Equal(t, "type Rooms.example.dev\nthat is all for now\n", string(output))
}
