// Stand-ins for the EBS CSI driver, node-driver-registrar and livenessprobe, whose modules are not served by the module proxy.
// They know the flags and variables of kctl's manifest and no others.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const driverName = "ebs.csi.aws.com"

func main() {
	log.SetFlags(log.Lmicroseconds)
	programs := map[string]func(*flag.FlagSet, []string) error{
		"controller": controller, "node": node, "pre-stop-hook": preStop, "registrar": registrar, "livenessprobe": livenessProbe,
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		log.Fatal("first argument: controller, node, pre-stop-hook, registrar or livenessprobe")
	}
	if err := programs[os.Args[1]](flag.NewFlagSet(os.Args[1], flag.ExitOnError), os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// Of both kinds of driver. The log is always text.
func driverFlags(flags *flag.FlagSet) *string {
	flags.String("logging-format", "text", "")
	flags.Int("v", 0, "")
	return flags.String("endpoint", "unix://tmp/csi.sock", "")
}

func socketPath(endpoint string) string {
	return "/" + strings.TrimLeft(strings.TrimPrefix(endpoint, "unix:"), "/")
}

// Serves at a socket until the process ends; a socket from before is in the way.
func serve(path string, register func(*grpc.Server)) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	socket, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logCall))
	register(server)
	return server.Serve(socket)
}

func logCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	if name := filepath.Base(info.FullMethod); err != nil || name != "Probe" && !strings.HasSuffix(name, "Capabilities") {
		log.Printf("%s %v: %v", name, request, err)
	}
	return answer, err
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "kctl-lab"}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	able := func(what csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: what}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		able(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		able(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
	}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// The driver at the socket, and its name once it answers.
func connectDriver(path string) (csi.IdentityClient, string, error) {
	connection, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, "", err
	}
	driver := csi.NewIdentityClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	info, err := driver.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return driver, info.GetName(), err
}

// Tells kubelet of the driver at the socket.
func registrar(flags *flag.FlagSet, args []string) error {
	address := flags.String("csi-address", "/run/csi/socket", "")
	path := flags.String("kubelet-registration-path", "", "")
	health := flags.String("http-endpoint", "", "")
	flags.Int("v", 0, "")
	flags.Parse(args)
	_, name, err := connectDriver(*address)
	if err != nil {
		return err
	}
	socket := filepath.Join("/registration", name+"-reg.sock")
	http.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(socket); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
		}
	})
	go func() { log.Fatal(http.ListenAndServe(*health, nil)) }()
	return serve(socket, func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, registered{name: name, path: *path})
	})
}

type registered struct {
	registration.UnsafeRegistrationServer
	name, path string
}

func (r registered) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.path, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registered) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		log.Fatalf("kubelet refused %s: %s", r.name, status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// Answers kubelet's health checks with those of the driver.
func livenessProbe(flags *flag.FlagSet, args []string) error {
	address := flags.String("csi-address", "/run/csi/socket", "")
	limit := flags.Duration("probe-timeout", time.Second, "")
	metrics := flags.String("metrics-address", "", "")
	flags.Parse(args)
	driver, _, err := connectDriver(*address)
	if err != nil {
		return err
	}
	if *metrics != "" {
		go func() { log.Fatal(http.ListenAndServe(*metrics, http.NotFoundHandler())) }()
	}
	http.HandleFunc("/healthz", func(answer http.ResponseWriter, request *http.Request) {
		ctx, cancel := context.WithTimeout(request.Context(), *limit)
		defer cancel()
		if _, err := driver.Probe(ctx, &csi.ProbeRequest{}); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(answer, "ok")
	})
	return http.ListenAndServe(":9808", nil)
}
