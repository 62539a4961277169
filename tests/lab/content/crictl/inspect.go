package main

import (
	"fmt"

	"github.com/spf13/cobra"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// each runs a command's work for every id given.
func each(use, about string, work func(*cobra.Command, string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: about, Args: cobra.MinimumNArgs(1), RunE: func(command *cobra.Command, ids []string) error {
		for _, id := range ids {
			if err := work(command, id); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		return nil
	}}
}

func format(command *cobra.Command) *string {
	return command.Flags().StringP("output", "o", "json", "json or yaml")
}

func inspect(s *settings) *cobra.Command {
	var output *string
	command := each("inspect CONTAINER...", "Show a container's status", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.ContainerStatus(command.Context(), id, true)
		if err != nil {
			return err
		}
		whole := &runtime.ContainerStatusResponse{Status: answer.Status}
		return object(command.OutOrStdout(), *output, whole, answer.Info)
	})
	output = format(command)
	return command
}

func inspectPod(s *settings) *cobra.Command {
	var output *string
	command := each("inspectp POD...", "Show a pod's status", func(command *cobra.Command, id string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.PodSandboxStatus(command.Context(), id, true)
		if err != nil {
			return err
		}
		whole := &runtime.PodSandboxStatusResponse{Status: answer.Status}
		return object(command.OutOrStdout(), *output, whole, answer.Info)
	})
	output = format(command)
	return command
}

func inspectImage(s *settings) *cobra.Command {
	var output *string
	command := each("inspecti IMAGE...", "Show an image", func(command *cobra.Command, name string) error {
		service, err := s.image(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.ImageStatus(command.Context(), &runtime.ImageSpec{Image: name}, true)
		if err != nil {
			return err
		}
		if answer.Image == nil {
			return fmt.Errorf("no such image %q present", name)
		}
		whole := &runtime.ImageStatusResponse{Image: answer.Image}
		return object(command.OutOrStdout(), *output, whole, answer.Info)
	})
	output = format(command)
	return command
}

func info(s *settings) *cobra.Command {
	command := &cobra.Command{Use: "info", Short: "Show the runtime's status", Args: cobra.NoArgs}
	output := format(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.Status(command.Context(), true)
		if err != nil {
			return err
		}
		whole := &runtime.StatusResponse{Status: answer.Status, RuntimeHandlers: answer.RuntimeHandlers}
		return object(command.OutOrStdout(), *output, whole, answer.Info)
	}
	return command
}

func runtimeVersion(s *settings) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Show the runtime's version", Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
		service, err := s.runtime(command.Context())
		if err != nil {
			return err
		}
		answer, err := service.Version(command.Context(), "v1")
		if err != nil {
			return err
		}
		fmt.Fprintf(command.OutOrStdout(), "Version:  %s\nRuntimeName:  %s\nRuntimeVersion:  %s\nRuntimeApiVersion:  %s\n",
			answer.Version, answer.RuntimeName, answer.RuntimeVersion, answer.RuntimeApiVersion)
		return nil
	}}
}
