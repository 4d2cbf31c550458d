package interop

import (
	"testing"

	"github.com/stretchr/testify/suite"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state/conformance"
)

func init() {
	if err := protobuf.RegisterResource(conformance.PathResourceType, &conformance.PathResource{}); err != nil {
		panic(err)
	}
}

func TestState(t *testing.T) {
	for _, kind := range []string{"memory", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			suite.Run(t, &conformance.StateSuite{
				State:      openState(t, kind),
				Namespaces: []resource.Namespace{"default", "controller", "system", "runtime"},
			})
		})
	}
}
