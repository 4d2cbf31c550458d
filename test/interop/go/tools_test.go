package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/health" // Has clients ask for the health of their servers.
	health "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

const limit = 10 * time.Second

func TestHealth(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, stop := dial(t, "memory")
	client := health.NewHealthClient(connection)
	for _, service := range []string{"", "cosi.resource.State", "steadystate.v1.Control", "grpc.health.v1.Health"} {
		answer, err := client.Check(ctx, &health.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		require.Equal(t, health.HealthCheckResponse_SERVING, answer.GetStatus(), service)
	}
	_, err := client.Check(ctx, &health.HealthCheckRequest{Service: "no.such.Service"})
	require.Equal(t, codes.NotFound, status.Code(err))

	unknown, err := client.Watch(ctx, &health.HealthCheckRequest{Service: "no.such.Service"})
	require.NoError(t, err)
	answer, err := unknown.Recv()
	require.NoError(t, err)
	require.Equal(t, health.HealthCheckResponse_SERVICE_UNKNOWN, answer.GetStatus())

	watch, err := client.Watch(ctx, &health.HealthCheckRequest{})
	require.NoError(t, err)
	answer, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, health.HealthCheckResponse_SERVING, answer.GetStatus())
	stop()
	answer, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, health.HealthCheckResponse_NOT_SERVING, answer.GetStatus(), "a server that stops says so first")
}

// TestHealthOfBalancer lets the client's own health checking decide whether calls are sent.
func TestHealthOfBalancer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, _ := dial(t, "memory", grpc.WithDefaultServiceConfig(
		`{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"cosi.resource.State"}}`))
	answer, err := health.NewHealthClient(connection).Check(ctx, &health.HealthCheckRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, health.HealthCheckResponse_SERVING, answer.GetStatus())
}

func TestReflection(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, _ := dial(t, "memory")
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	ask := func(request *reflection.ServerReflectionRequest) *reflection.ServerReflectionResponse {
		require.NoError(t, stream.Send(request))
		answer, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, proto.Equal(request, answer.GetOriginalRequest()))
		return answer
	}

	var services []string
	for _, service := range ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_ListServices{ListServices: "*"},
	}).GetListServicesResponse().GetService() {
		services = append(services, service.GetName())
	}
	require.Equal(t, []string{
		"cosi.resource.State", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
		"grpc.reflection.v1alpha.ServerReflection", "steadystate.v1.Control",
	}, services)

	// What a tool does: the files of each service are put together, and every method has its messages.
	methods := 0
	for _, service := range services {
		answer := ask(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service},
		})
		set := &descriptorpb.FileDescriptorSet{}
		for _, bytes := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			require.NoError(t, proto.Unmarshal(bytes, file))
			set.File = append(set.File, file)
		}
		files, err := protodesc.NewFiles(set)
		require.NoError(t, err, service)
		found, err := files.FindDescriptorByName(protoreflect.FullName(service))
		require.NoError(t, err)
		methods += found.(protoreflect.ServiceDescriptor).Methods().Len()
	}
	require.Greater(t, methods, 15)

	for _, symbol := range []string{"cosi.resource.State.Watch", "cosi.resource.LabelTerm.Operation", "google.protobuf.Timestamp"} {
		answer := ask(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
		})
		require.NotEmpty(t, answer.GetFileDescriptorResponse().GetFileDescriptorProto(), symbol)
	}
	require.NotEmpty(t, ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_FileByFilename{FileByFilename: "google/protobuf/timestamp.proto"},
	}).GetFileDescriptorResponse().GetFileDescriptorProto())
	require.EqualValues(t, codes.NotFound, ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "no.such.Thing"},
	}).GetErrorResponse().GetErrorCode())
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Error(t, err)

	// Older tools ask under the name that it had before.
	alpha, err := reflectionalpha.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.NoError(t, alpha.Send(&reflectionalpha.ServerReflectionRequest{
		MessageRequest: &reflectionalpha.ServerReflectionRequest_ListServices{},
	}))
	answer, err := alpha.Recv()
	require.NoError(t, err)
	require.Len(t, answer.GetListServicesResponse().GetService(), len(services))
}
