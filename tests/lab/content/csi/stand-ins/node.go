package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Until this taint is gone, only the driver's own pods run on a Node that was made with it.
const ownTaint = "ebs.csi.aws.com/agent-not-ready"

// What an instance of the Nitro system has beside its network interface and root volume.
const nitroLimit = 26

type nodeServer struct {
	csi.UnimplementedNodeServer
	instance, zone string
	limit          int64
}

func node(flags *flag.FlagSet, args []string) error {
	endpoint := driverFlags(flags)
	limit := flags.Int64("volume-attach-limit", nitroLimit, "")
	flags.String("csi-mount-point-prefix", "", "")
	flags.Parse(args)
	// As the driver does where the metadata service does not answer: a pod is a hop too far away.
	own, err := ownNode()
	if err != nil {
		return err
	}
	server := &nodeServer{instance: path.Base(own.Spec.ProviderID), zone: own.Metadata.Labels[zoneLabel], limit: *limit}
	if server.zone == "" || !strings.HasPrefix(server.instance, "i-") {
		return fmt.Errorf("the Node does not say instance and zone: %+v", own)
	}
	go func() {
		for err := removeTaint(); err != nil; err = removeTaint() {
			log.Print("removing the taint: ", err)
			time.Sleep(time.Second)
		}
	}()
	return serve(socketPath(*endpoint), func(grpc *grpc.Server) {
		csi.RegisterIdentityServer(grpc, identity{})
		csi.RegisterNodeServer(grpc, server)
	})
}

func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	segments := map[string]string{zoneLabel: n.zone, ownZoneLabel: n.zone, "kubernetes.io/os": "linux"}
	return &csi.NodeGetInfoResponse{
		NodeId: n.instance, MaxVolumesPerNode: n.limit, AccessibleTopology: &csi.Topology{Segments: segments},
	}, nil
}

func (*nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	answer := &csi.NodeGetCapabilitiesResponse{}
	for _, able := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: able}},
		})
	}
	return answer, nil
}

// Makes a file system if there is none, and mounts it.
func (*nodeServer) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	target, mount := request.GetStagingTargetPath(), request.GetVolumeCapability().GetMount()
	if mount == nil || !slices.Contains([]string{"", "ext4"}, mount.GetFsType()) || len(mount.GetMountFlags()) > 0 {
		return nil, status.Error(codes.InvalidArgument, "this stand-in knows ext4 without mount options only")
	}
	device, err := findDevice(request.GetVolumeId())
	if err == nil && !isMounted(target) {
		err = prepareFileSystem(device)
		if err == nil {
			err = os.MkdirAll(target, 0o750)
		}
		if err == nil {
			err = syscall.Mount(device, target, "ext4", 0, "")
		}
	}
	return &csi.NodeStageVolumeResponse{}, toInternal("staging", err)
}

// The link that Amazon's udev rules make, followed.
func findDevice(volume string) (string, error) {
	return filepath.EvalSymlinks("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_" + strings.ReplaceAll(volume, "-", ""))
}

// A blank device gets a file system. One that grew while it was not mounted has its file system enlarged before it is mounted, which the
// driver does after: some lab machines may not enlarge mounted ones.
func prepareFileSystem(device string) error {
	file, err := os.Open(device)
	if err != nil {
		return err
	}
	defer file.Close()
	start := make([]byte, 64<<10)
	if _, err := io.ReadFull(file, start); err != nil {
		return err
	}
	switch {
	case start[1080] == 0x53 && start[1081] == 0xef:
		if err := run("e2fsck", "-p", "-f", device); err != nil {
			return err
		}
		return run("resize2fs", device)
	case bytes.Count(start, []byte{0}) == len(start):
		return run("mkfs.ext4", "-q", "-F", "-m0", device)
	default:
		return fmt.Errorf("%s is neither blank nor ext4", device)
	}
}

func run(program string, args ...string) error {
	said, err := exec.Command(program, args...).CombinedOutput()
	// e2fsck ends with 1 when it has repaired something.
	if exit, ok := err.(*exec.ExitError); ok && program == "e2fsck" && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s %v: %w: %s", program, args, err, bytes.TrimSpace(said))
	}
	return nil
}

func isMounted(target string) bool {
	mounts, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(mounts), " "+target+" ")
}

func (*nodeServer) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, toInternal("unstaging", unmount(request.GetStagingTargetPath()))
}

func unmount(target string) error {
	if isMounted(target) {
		return syscall.Unmount(target, 0)
	}
	return nil
}

func (*nodeServer) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := request.GetTargetPath()
	err := os.MkdirAll(target, 0o750)
	if err == nil && !isMounted(target) {
		err = syscall.Mount(request.GetStagingTargetPath(), target, "", syscall.MS_BIND, "")
		if err == nil && request.GetReadonly() {
			err = syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		}
	}
	return &csi.NodePublishVolumeResponse{}, toInternal("publishing", err)
}

func (*nodeServer) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := unmount(request.GetTargetPath())
	if err == nil {
		if err = os.Remove(request.GetTargetPath()); os.IsNotExist(err) {
			err = nil
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, toInternal("unpublishing", err)
}

func (*nodeServer) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	device, err := findDevice(request.GetVolumeId())
	if err == nil {
		err = run("resize2fs", device)
	}
	return &csi.NodeExpandVolumeResponse{}, toInternal("enlarging", err)
}

func toInternal(what string, err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(codes.Internal, "%s: %v", what, err)
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	Added  string `json:"timeAdded,omitempty"`
}

type nodeObject struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		ProviderID string
		Taints     []taint
	}
}

var nodePath = "/api/v1/nodes/" + os.Getenv("CSI_NODE_NAME")

func ownNode() (nodeObject, error) {
	var own nodeObject
	_, err := callAPI("GET", nodePath, nil, &own)
	return own, err
}

func removeTaint() error {
	own, err := ownNode()
	rest := slices.DeleteFunc(slices.Clone(own.Spec.Taints), func(one taint) bool { return one.Key == ownTaint })
	if err != nil || len(rest) == len(own.Spec.Taints) {
		return err
	}
	_, err = callAPI("PATCH", nodePath, []map[string]any{
		{"op": "test", "path": "/spec/taints", "value": own.Spec.Taints},
		{"op": "replace", "path": "/spec/taints", "value": rest},
	}, nil)
	return err
}

// Before the pod ends on a Node that is drained, its volumes are detached: nobody else could unmount them.
func preStop(flags *flag.FlagSet, args []string) error {
	flags.Parse(args)
	for {
		var own nodeObject
		code, err := callAPI("GET", nodePath, nil, &own)
		drained := slices.ContainsFunc(own.Spec.Taints, func(one taint) bool { return one.Key == "node.kubernetes.io/unschedulable" })
		if code == http.StatusNotFound || err == nil && !drained {
			return nil
		}
		var attached struct {
			Items []struct{ Spec struct{ NodeName string } }
		}
		if err == nil {
			_, err = callAPI("GET", "/apis/storage.k8s.io/v1/volumeattachments", nil, &attached)
		}
		if err != nil {
			return err
		}
		left := false
		for _, one := range attached.Items {
			left = left || one.Spec.NodeName == os.Getenv("CSI_NODE_NAME")
		}
		if !left {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// One call with the token of the pod.
func callAPI(method, at string, body, answer any) (int, error) {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return 0, err
	}
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return 0, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	defer client.CloseIdleConnections()
	sent, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(method, "https://"+server+at, bytes.NewReader(sent))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json-patch+json")
	got, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, at, got.Status, text)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return got.StatusCode, err
}
