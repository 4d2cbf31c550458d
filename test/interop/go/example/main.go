// Lists the types that a server knows, and follows the processes of a machine.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

func main() {
	// unix:/path/to/api.sock, or 127.0.0.1:port
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck
	store := state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(connection)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// Types that both sides know are decoded.
	listDefinitions := safe.StateListAll[*meta.ResourceDefinition]
	definitions, err := listDefinitions(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	for definition := range definitions.All() {
		fmt.Println("type", definition.TypedSpec().Type)
	}

	// Others come as they were sent; the text form is theirs to show.
	events := make(chan state.Event)
	kind := resource.NewMetadata("default", "Processes.host.steadystate.dev", "", resource.VersionUndefined)
	if err = store.WatchKind(ctx, kind, events, state.WithBootstrapContents(true)); err != nil {
		log.Fatal(err)
	}
	for event := range events {
		switch event.Type {
		case state.Bootstrapped:
			fmt.Println("that is all for now")
			return
		case state.Errored:
			log.Fatal(event.Error)
		default:
			fmt.Println(event.Type, event.Resource.Metadata().ID())
		}
	}
}
