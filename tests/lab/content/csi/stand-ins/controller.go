package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Labels of Nodes and volumes, as the driver has them: volumes have the first only.
const (
	zoneLabel    = "topology.kubernetes.io/zone"
	ownZoneLabel = "topology.ebs.csi.aws.com/zone"
)

const gib = 1 << 30

type controllerServer struct {
	csi.UnimplementedControllerServer
	ec2  *ec2.Client
	tags map[string]string
	// Of its name, in the tag Name.
	cluster string
	// One attachment begins at a time: each takes a device name that is free.
	attaching sync.Mutex
}

func controller(flags *flag.FlagSet, args []string) error {
	endpoint := driverFlags(flags)
	cluster := flags.String("k8s-tag-cluster-id", "", "")
	extra := flags.String("extra-tags", "", "")
	metrics := flags.String("http-endpoint", "", "")
	flags.Bool("batching", false, "")
	flags.Parse(args)
	if *cluster == "" {
		return errors.New("this stand-in needs --k8s-tag-cluster-id")
	}
	tags := map[string]string{
		"ebs.csi.aws.com/cluster":           "true",
		"KubernetesCluster":                 *cluster,
		"kubernetes.io/cluster/" + *cluster: "owned",
	}
	for _, tag := range strings.FieldsFunc(*extra, func(r rune) bool { return r == ',' }) {
		key, value, found := strings.Cut(tag, "=")
		if !found || strings.Contains(value, "=") || strings.HasPrefix(key, "kubernetes.io") || strings.HasPrefix(key, "aws:") {
			return fmt.Errorf("the driver accepts no such tag: %q", tag)
		}
		tags[key] = value
	}
	// With the role of the machine, by its metadata service.
	settings, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(os.Getenv("AWS_REGION")))
	if err != nil {
		return err
	}
	client := ec2.NewFromConfig(settings, func(options *ec2.Options) {
		if at := os.Getenv("AWS_EC2_ENDPOINT"); at != "" {
			options.BaseEndpoint = &at
		}
	})
	go func() { log.Fatal(http.ListenAndServe(*metrics, http.NotFoundHandler())) }()
	return serve(socketPath(*endpoint), func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{})
		csi.RegisterControllerServer(server, &controllerServer{ec2: client, tags: tags, cluster: *cluster})
	})
}

func (*controllerServer) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, able := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: able}},
		})
	}
	return answer, nil
}

// The same name makes the same volume, by EC2's client token.
func (c *controllerServer) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	name := request.GetName()
	tags := map[string]string{"CSIVolumeName": name, "Name": c.cluster + "-dynamic-" + name}
	for key, value := range c.tags {
		tags[key] = value
	}
	asked := &ec2.CreateVolumeInput{
		AvailabilityZone: aws.String(pickZone(request.GetAccessibilityRequirements())),
		ClientToken:      aws.String(fmt.Sprintf("%x", sha256.Sum256([]byte(name)))),
		Size:             aws.Int32(roundUp(request.GetCapacityRange().GetRequiredBytes())),
		VolumeType:       types.VolumeTypeGp3,
	}
	for key, value := range request.GetParameters() {
		switch strings.ToLower(key) {
		case "type":
			asked.VolumeType = types.VolumeType(value)
		case "encrypted":
			asked.Encrypted = aws.Bool(value == "true")
		case "csi.storage.k8s.io/pvc/name":
			tags["kubernetes.io/created-for/pvc/name"] = value
		case "csi.storage.k8s.io/pvc/namespace":
			tags["kubernetes.io/created-for/pvc/namespace"] = value
		case "csi.storage.k8s.io/pv/name":
			tags["kubernetes.io/created-for/pv/name"] = value
		default:
			return nil, status.Errorf(codes.InvalidArgument, "this stand-in does not know the parameter %s", key)
		}
	}
	ofVolume := types.TagSpecification{ResourceType: types.ResourceTypeVolume}
	// In one order: a repeated call with the same token has to be the same call.
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		ofVolume.Tags = append(ofVolume.Tags, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	asked.TagSpecifications = []types.TagSpecification{ofVolume}
	made, err := c.ec2.CreateVolume(ctx, asked)
	if err != nil {
		return nil, toStatus(err)
	}
	volume, err := c.waitFor(ctx, *made.VolumeId, func(volume types.Volume) bool { return volume.State != types.VolumeStateCreating })
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           *volume.VolumeId,
		CapacityBytes:      int64(*volume.Size) * gib,
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{zoneLabel: *volume.AvailabilityZone}}},
	}}, nil
}

func (c *controllerServer) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	_, err := c.ec2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: aws.String(request.GetVolumeId())})
	if err != nil && !isNotFound(err) {
		return nil, toStatus(err)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controllerServer) ControllerPublishVolume(ctx context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	volume, instance := request.GetVolumeId(), request.GetNodeId()
	if err := c.attach(ctx, volume, instance); err != nil {
		return nil, err
	}
	attached, err := c.waitFor(ctx, volume, func(volume types.Volume) bool {
		at := attachmentTo(volume, instance)
		return at == nil || at.State == types.VolumeAttachmentStateAttached
	})
	if err != nil {
		return nil, err
	}
	at := attachmentTo(attached, instance)
	if at == nil {
		return nil, status.Errorf(codes.Internal, "%s was detached from %s meanwhile", volume, instance)
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"devicePath": *at.Device}}, nil
}

// Begins an attachment, if there is none.
func (c *controllerServer) attach(ctx context.Context, volume, instance string) error {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	now, err := c.describe(ctx, volume)
	if err != nil {
		return err
	}
	if attachmentTo(now, instance) != nil {
		return nil
	}
	found, err := c.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return toStatus(err)
	}
	taken := map[string]bool{}
	for _, mapping := range found.Reservations[0].Instances[0].BlockDeviceMappings {
		taken[*mapping.DeviceName] = true
	}
	for letter := 'a'; letter <= 'z'; letter++ {
		if device := "/dev/xvda" + string(letter); !taken[device] {
			_, err := c.ec2.AttachVolume(ctx, &ec2.AttachVolumeInput{
				Device: aws.String(device), InstanceId: aws.String(instance), VolumeId: aws.String(volume),
			})
			return toStatus(err)
		}
	}
	return status.Errorf(codes.ResourceExhausted, "%s has no device name left", instance)
}

func (c *controllerServer) ControllerUnpublishVolume(ctx context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	volume, instance := request.GetVolumeId(), request.GetNodeId()
	now, err := c.describe(ctx, volume)
	at := attachmentTo(now, instance)
	if err == nil && at != nil && at.State != types.VolumeAttachmentStateDetaching {
		_, err = c.ec2.DetachVolume(ctx, &ec2.DetachVolumeInput{InstanceId: aws.String(instance), VolumeId: aws.String(volume)})
		err = toStatus(err)
	}
	if err == nil {
		_, err = c.waitFor(ctx, volume, func(volume types.Volume) bool { return attachmentTo(volume, instance) == nil })
	}
	// A volume that is gone is detached too.
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c *controllerServer) ControllerExpandVolume(ctx context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	id, size := request.GetVolumeId(), roundUp(request.GetCapacityRange().GetRequiredBytes())
	volume, err := c.describe(ctx, id)
	if err != nil {
		return nil, err
	}
	if *volume.Size < size {
		if _, err := c.ec2.ModifyVolume(ctx, &ec2.ModifyVolumeInput{VolumeId: aws.String(id), Size: aws.Int32(size)}); err != nil {
			return nil, toStatus(err)
		}
	}
	for {
		found, err := c.ec2.DescribeVolumesModifications(ctx, &ec2.DescribeVolumesModificationsInput{VolumeIds: []string{id}})
		if err != nil {
			return nil, toStatus(err)
		}
		going := false
		for _, one := range found.VolumesModifications {
			going = going || one.ModificationState == types.VolumeModificationStateModifying
		}
		if !going {
			break
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(max(size, *volume.Size)) * gib, NodeExpansionRequired: true}, nil
}

func (c *controllerServer) describe(ctx context.Context, id string) (types.Volume, error) {
	found, err := c.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{id}})
	if err != nil {
		return types.Volume{}, toStatus(err)
	}
	return found.Volumes[0], nil
}

// The volume as soon as it is so.
func (c *controllerServer) waitFor(ctx context.Context, id string, done func(types.Volume) bool) (types.Volume, error) {
	for {
		volume, err := c.describe(ctx, id)
		if err != nil || done(volume) {
			return volume, err
		}
		if err := pause(ctx); err != nil {
			return volume, err
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-time.After(500 * time.Millisecond):
		return nil
	}
}

func attachmentTo(volume types.Volume, instance string) *types.VolumeAttachment {
	for _, one := range volume.Attachments {
		if aws.ToString(one.InstanceId) == instance && one.State != types.VolumeAttachmentStateDetached {
			return &one
		}
	}
	return nil
}

// The zone that the scheduler prefers, then any that is allowed.
func pickZone(asked *csi.TopologyRequirement) string {
	for _, topology := range append(asked.GetPreferred(), asked.GetRequisite()...) {
		for _, label := range []string{zoneLabel, ownZoneLabel} {
			if zone := topology.GetSegments()[label]; zone != "" {
				return zone
			}
		}
	}
	return ""
}

// In GiB; one at least, as EC2 has it.
func roundUp(bytes int64) int32 {
	return int32(max(1, (bytes+gib-1)/gib))
}

func isNotFound(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && strings.HasSuffix(refused.ErrorCode(), ".NotFound")
}

func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if isNotFound(err) {
		return status.Error(codes.NotFound, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
