// go-runner as Kubernetes' images have it: runs a command with its output in a log file, passes
// signals on to it and ends as it ends.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	file := flag.String("log-file", "", "If non-empty, save stdout to this file")
	also := flag.Bool("also-stdout", false, "useful with log-file, log to standard output as well as the log file")
	redirect := flag.Bool("redirect-stderr", true, "treat stderr same as stdout")
	flag.Parse()
	code, err := run(flag.Args(), *file, *also, *redirect)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-runner:", err)
	}
	os.Exit(code)
}

func run(arguments []string, file string, also, redirect bool) (int, error) {
	if len(arguments) == 0 {
		return 1, errors.New("no command given")
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if file != "" {
		log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return 1, fmt.Errorf("cannot open the log: %w", err)
		}
		defer log.Close()
		var output io.Writer = log
		if also {
			output = io.MultiWriter(os.Stdout, log)
		}
		command.Stdout = output
		if redirect {
			command.Stderr = output
		}
	} else if redirect {
		command.Stderr = os.Stdout
	}
	// Before the start: no signal may fall between.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	if err := command.Start(); err != nil {
		return 1, err
	}
	go func() {
		for received := range signals {
			// Fails only when the process is gone, and then Wait says how it ended.
			_ = command.Process.Signal(received)
		}
	}()
	err := command.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		if err != nil {
			return 1, err
		}
		return 0, nil
	}
	if status, known := ended.Sys().(syscall.WaitStatus); known && status.Signaled() {
		return 128 + int(status.Signal()), fmt.Errorf("%s: %w", arguments[0], err)
	}
	return ended.ExitCode(), nil
}
