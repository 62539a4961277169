package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	criLogs "k8s.io/cri-client/pkg/logs"
)

func logs(s *settings) *cobra.Command {
	var tail int64
	var since time.Duration
	options := &criLogs.LogOptions{}
	command := &cobra.Command{Use: "logs CONTAINER", Short: "Print a container's log", Args: cobra.ExactArgs(1)}
	flags := command.Flags()
	flags.BoolVarP(&options.Follow, "follow", "f", false, "go on as the log grows")
	flags.BoolVar(&options.Timestamp, "timestamps", false, "with the time of every line")
	flags.Int64Var(&tail, "tail", -1, "only the last lines")
	flags.DurationVar(&since, "since", 0, "only lines not older than this")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.ContainerStatus(command.Context(), arguments[0], false)
		if err != nil {
			return err
		}
		path := answer.Status.GetLogPath()
		if path == "" {
			return errors.New("the container has no log")
		}
		if tail >= 0 {
			options.TailLines = &tail
		}
		if since > 0 {
			options.Since = time.Now().Add(-since)
		}
		return criLogs.ReadLogs(command.Context(), path, answer.Status.Id, options, service, command.OutOrStdout(), command.ErrOrStderr())
	}
	return command
}

func pull(s *settings) *cobra.Command {
	return each("pull IMAGE", "Pull an image", func(command *cobra.Command, name string) error {
		service, err := s.image(command.Context())
		if err != nil {
			return err
		}
		reference, err := service.PullImage(command.Context(), &runtime.ImageSpec{Image: name}, nil, nil)
		if err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), "Image is up to date for", reference)
		return nil
	})
}

func removeImage(s *settings) *cobra.Command {
	return each("rmi IMAGE...", "Remove images", func(command *cobra.Command, name string) error {
		service, err := s.image(command.Context())
		if err != nil {
			return err
		}
		spec := &runtime.ImageSpec{Image: name}
		answer, err := service.ImageStatus(command.Context(), spec, false)
		if err != nil {
			return err
		}
		// Removing what is not there succeeds in the CRI; a typo should not.
		if answer.Image == nil {
			return errors.New("no such image")
		}
		if err := service.RemoveImage(command.Context(), spec); err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), "Deleted:", name)
		return nil
	})
}

func stopPod(s *settings) *cobra.Command {
	return each("stopp POD...", "Stop pods", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		if err := service.StopPodSandbox(command.Context(), id); err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), "Stopped sandbox", id)
		return nil
	})
}

func removePod(s *settings) *cobra.Command {
	var force bool
	command := each("rmp POD...", "Remove pods", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.PodSandboxStatus(command.Context(), id, false)
		if err != nil {
			return err
		}
		if answer.Status.GetState() == runtime.PodSandboxState_SANDBOX_READY {
			if !force {
				return errors.New("the pod is running: stop it first, or use --force")
			}
			if err := service.StopPodSandbox(command.Context(), id); err != nil {
				return err
			}
		}
		if err := service.RemovePodSandbox(command.Context(), id); err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), "Removed sandbox", id)
		return nil
	})
	command.Flags().BoolVarP(&force, "force", "f", false, "stop it first")
	return command
}

func stop(s *settings) *cobra.Command {
	var timeout int64
	command := each("stop CONTAINER...", "Stop containers", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		if err := service.StopContainer(command.Context(), id, timeout); err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), id)
		return nil
	})
	command.Flags().Int64Var(&timeout, "timeout", 0, "seconds before it is killed")
	return command
}

func remove(s *settings) *cobra.Command {
	return each("rm CONTAINER...", "Remove containers", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		if err := service.RemoveContainer(command.Context(), id); err != nil {
			return err
		}
		fmt.Fprintln(command.OutOrStdout(), id)
		return nil
	})
}
