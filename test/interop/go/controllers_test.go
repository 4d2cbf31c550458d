package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/stretchr/testify/suite"
	"go.uber.org/zap/zaptest"

	"github.com/cosi-project/runtime/pkg/controller/conformance"
	"github.com/cosi-project/runtime/pkg/controller/runtime"
	"github.com/cosi-project/runtime/pkg/controller/runtime/options"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
)

func init() {
	for _, err := range []error{
		protobuf.RegisterResource(conformance.IntResourceType, &conformance.IntResource{}),
		protobuf.RegisterResource(conformance.StrResourceType, &conformance.StrResource{}),
		protobuf.RegisterResource(conformance.SentenceResourceType, &conformance.SentenceResource{}),
	} {
		if err != nil {
			panic(err)
		}
	}
}

// cached names every kind that the suite's controllers read.
func cached() []options.Option {
	kinds := []struct{ namespace, resourceType string }{
		{"default", conformance.IntResourceType},
		{"default", conformance.StrResourceType},
		{"ints", conformance.IntResourceType},
		{"strings", conformance.StrResourceType},
		{"sentences", conformance.SentenceResourceType},
		{"source", conformance.IntResourceType},
		{"target", conformance.IntResourceType},
		{"source1", conformance.IntResourceType},
		{"source2", conformance.IntResourceType},
		{"modify-with-result-source", conformance.StrResourceType},
		{"modify-with-result-target", conformance.StrResourceType},
		{"q-int", conformance.IntResourceType},
		{"q-str", conformance.StrResourceType},
		{"metrics", conformance.IntResourceType},
		{"metrics", conformance.StrResourceType},
		{"q-sleep-in", conformance.IntResourceType},
		{"q-sleep-out", conformance.StrResourceType},
	}
	all := []options.Option{options.WithWarnOnUncachedReads(true)}
	for _, kind := range kinds {
		all = append(all, options.WithCachedResource(kind.namespace, kind.resourceType))
	}
	return all
}

func TestControllers(t *testing.T) {
	for _, variant := range []struct {
		name      string
		readCache bool
		options   []options.Option
	}{
		{name: "defaults"},
		{name: "rate limited", options: []options.Option{options.WithChangeRateLimit(10, 20)}},
		{name: "cached", readCache: true, options: cached()},
	} {
		t.Run(variant.name, func(t *testing.T) {
			suite.Run(t, &conformance.RuntimeSuite{
				MetricsReadCacheEnabled: variant.readCache,
				SetupRuntime: func(rs *conformance.RuntimeSuite) {
					rs.State = openState(rs.T(), "memory")
					made, err := runtime.NewRuntime(rs.State, zaptest.NewLogger(rs.T()), variant.options...)
					require.NoError(rs.T(), err)
					rs.Runtime = made
				},
			})
		})
	}
}
