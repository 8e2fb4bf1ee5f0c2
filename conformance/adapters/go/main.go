// An adapter around one executable that is a controller: docs/adapter-protocol.md, in Go without dependencies.
//
//	go build -o adapter main.go
//	replispec conformance run --kind controller --adapter './adapter ./mycontroller --port {port} --data {folder}'
//
// Real adapters generate the messages with protoc-gen-go and use protodelim; the few fields here are read by hand.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Numbers of spec/proto/replispec/adapter/v1/adapter.proto.
const (
	describe, start, crash, stop, suspend, resume, reset = 2, 3, 4, 5, 6, 7, 8
	description, ready, done, refusal, exited            = 2, 3, 4, 5, 6
	roleController, purposeRemoting                      = 1, 1
	unsupported, invalid, unknownInstance, failed, late  = 1, 2, 3, 4, 5
	largest                                              = 4 << 20
)

// A field of a message: a number, or bytes.
type field struct {
	value uint64
	data  []byte
}

// parse takes a message apart; the last of a field counts. It is enough for messages whose fields come once.
func parse(data []byte) (map[uint64]field, error) {
	found := map[uint64]field{}
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 {
			return nil, fmt.Errorf("no tag")
		}
		data = data[size:]
		value, size := binary.Uvarint(data)
		if size <= 0 || tag&7 != 0 && tag&7 != 2 {
			return nil, fmt.Errorf("field %d", tag>>3)
		}
		data = data[size:]
		if tag&7 == 0 {
			found[tag>>3] = field{value: value}
			continue
		}
		if value > uint64(len(data)) {
			return nil, fmt.Errorf("field %d is cut", tag>>3)
		}
		found[tag>>3] = field{data: data[:value]}
		data = data[value:]
	}
	return found, nil
}

func number(id, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, id<<3), value)
}

func bytes(id uint64, parts ...[]byte) []byte {
	var data []byte
	for _, part := range parts {
		data = append(data, part...)
	}
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, id<<3|2), uint64(len(data))), data...)
}

func text(id uint64, value string) []byte { return bytes(id, []byte(value)) }

type instance struct {
	name, folder string
	port         int
	process      *exec.Cmd
	ended        chan error
}

type adapter struct {
	command   []string
	folder    string
	instances map[string]*instance
}

func refuse(reason uint64, remark string) []byte {
	return bytes(refusal, number(1, reason), text(2, remark))
}

// answer carries one request out; kind is the number of its field in RunnerMessage.
func (a *adapter) answer(kind uint64, request map[uint64]field) []byte {
	if kind == describe {
		return bytes(description, number(1, 1), text(2, "example"), text(3, "1.0"), text(4, "go"),
			number(5, roleController), // a repeated number may be packed or not
			number(6, 1), number(6, 2), number(6, 3), number(6, 4), number(6, 5))
	}
	name := string(request[1].data)
	one := a.instances[name]
	if kind == start {
		return a.start(name, request)
	}
	if kind == reset {
		if one == nil || one.process != nil {
			return refuse(unknownInstance, "nothing of this name that does not run")
		}
		os.RemoveAll(one.folder)
		delete(a.instances, name)
		return bytes(done)
	}
	if one == nil || one.process == nil {
		return refuse(unknownInstance, "no "+name+" runs")
	}
	switch kind {
	case crash:
		one.kill()
	case stop:
		one.process.Process.Signal(syscall.SIGTERM)
		select {
		case <-one.ended:
			one.process = nil
		case <-time.After(time.Duration(request[2].value) * time.Millisecond):
			one.kill()
			return refuse(late, "it did not end in time and was killed")
		}
	case suspend:
		one.process.Process.Signal(syscall.SIGSTOP)
	case resume:
		one.process.Process.Signal(syscall.SIGCONT)
	default:
		return refuse(unsupported, "this adapter does not know the request")
	}
	return bytes(done)
}

func (a *adapter) start(name string, request map[uint64]field) []byte {
	if request[2].value != roleController {
		return refuse(unsupported, "only controllers")
	}
	endpoint, err := parse(request[3].data)
	if err != nil || name == "" {
		return refuse(invalid, "no endpoint or no name")
	}
	one := a.instances[name]
	if one == nil {
		one = &instance{name: name, folder: filepath.Join(a.folder, filepath.Base(name))}
		a.instances[name] = one
	}
	if one.process != nil {
		return refuse(invalid, name+" runs already")
	}
	if port := int(endpoint[3].value); port != 0 {
		one.port = port
	} else if one.port == 0 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return refuse(failed, err.Error())
		}
		one.port = listener.Addr().(*net.TCPAddr).Port
		listener.Close()
	}
	os.MkdirAll(one.folder, 0o700)
	fill := strings.NewReplacer("{port}", fmt.Sprint(one.port), "{folder}", one.folder)
	words := make([]string, len(a.command))
	for at, word := range a.command {
		words[at] = fill.Replace(word)
	}
	one.process = exec.Command(words[0], words[1:]...)
	one.process.Stderr = os.Stderr // its standard output must not reach ours
	if err := one.process.Start(); err != nil {
		one.process = nil
		return refuse(failed, err.Error())
	}
	one.ended = make(chan error, 1)
	go func(process *exec.Cmd, ended chan error) { ended <- process.Wait() }(one.process, one.ended)
	address := fmt.Sprintf("127.0.0.1:%d", one.port)
	for until := time.Now().Add(time.Duration(request[10].value) * time.Millisecond); ; {
		if connection, err := net.Dial("tcp", address); err == nil {
			connection.Close()
			break
		}
		select {
		case <-one.ended:
			one.process = nil
			return refuse(failed, "it ended before it took connections")
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(until) {
			one.kill()
			return refuse(late, "not ready in time")
		}
	}
	return bytes(ready, text(1, name),
		bytes(2, number(1, purposeRemoting), text(2, "127.0.0.1"), number(3, uint64(one.port))))
}

func (one *instance) kill() {
	one.process.Process.Kill()
	<-one.ended
	one.process = nil
}

// tellEnded says of every instance that ended by itself that it did.
func (a *adapter) tellEnded() {
	for _, one := range a.instances {
		if one.process == nil {
			continue
		}
		select {
		case <-one.ended:
			status := one.process.ProcessState.Sys().(syscall.WaitStatus)
			one.process = nil
			how := number(2, uint64(status.ExitStatus()))
			if status.Signaled() {
				how = number(3, uint64(status.Signal()))
			}
			write(bytes(exited, text(1, one.name), how))
		default:
		}
	}
}

func write(message []byte) {
	os.Stdout.Write(append(binary.AppendUvarint(nil, uint64(len(message))), message...))
}

func read(input *bufio.Reader) (map[uint64]field, error) {
	size, err := binary.ReadUvarint(input)
	if err != nil || size > largest {
		return nil, io.EOF
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(input, message); err != nil {
		return nil, err
	}
	return parse(message)
}

func main() {
	folder, err := os.MkdirTemp("", "adapter-go-")
	if err != nil || len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: adapter PROGRAM ARGS..., where {port} and {folder} are filled in")
		os.Exit(2)
	}
	a := &adapter{os.Args[1:], folder, map[string]*instance{}}
	requests := make(chan map[uint64]field)
	go func() {
		input := bufio.NewReader(os.Stdin)
		for {
			request, err := read(input)
			if err != nil {
				close(requests)
				return
			}
			requests <- request
		}
	}()
	for open := true; open; {
		select {
		case request, more := <-requests:
			if open = more; more {
				a.tellEnded()
				var content []byte = refuse(unsupported, "this adapter does not know the request")
				for kind := uint64(describe); kind <= reset; kind++ {
					if asked, there := request[kind]; there {
						if fields, err := parse(asked.data); err == nil {
							content = a.answer(kind, fields)
						}
					}
				}
				write(append(number(1, request[1].value), content...))
			}
		case <-time.After(100 * time.Millisecond):
			a.tellEnded()
		}
	}
	for _, one := range a.instances {
		if one.process != nil {
			one.kill()
		}
	}
	os.RemoveAll(folder)
}
