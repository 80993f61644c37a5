// A connector in Go: get_note reads a note, edit_note replaces its text. It runs anew for each op.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"unsafe"
)

const notes = "https://notes.example.com/notes/"

var ops = map[string]func(args map[string]any) (any, error){
	"get_note":  getNote,
	"edit_note": editNote,
}

func getNote(args map[string]any) (any, error) {
	id, err := text(args, "id")
	if err != nil {
		return nil, err
	}
	return ask("GET", notes+url.PathEscape(id), nil)
}

func editNote(args map[string]any) (any, error) {
	id, err := text(args, "id")
	if err != nil {
		return nil, err
	}
	replacement, err := text(args, "text")
	if err != nil {
		return nil, err
	}
	return ask("PUT", notes+url.PathEscape(id), map[string]any{"text": replacement})
}

// failure is what an op prints in place of an output; class is one that docs/connectors.md lists.
type failure struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

func (f failure) Error() string { return f.Message }

func fail(class, format string, values ...any) error {
	return failure{class, fmt.Sprintf(format, values...)}
}

func text(args map[string]any, name string) (string, error) {
	switch value := args[name].(type) {
	case nil:
		return "", fail("connector_runtime_error", "argument %s is missing", name)
	case string:
		return value, nil
	default:
		return "", fail("connector_runtime_error", "argument %s must be a string", name)
	}
}

// decode keeps every digit of a number.
func decode(from []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(from))
	decoder.UseNumber()
	return decoder.Decode(to)
}

//go:wasmimport aileron_host http_request
func httpRequest(at, size uint32) int32

//go:wasmimport aileron_host http_response_status
func httpResponseStatus() int32

//go:wasmimport aileron_host http_response_size
func httpResponseSize() int32

//go:wasmimport aileron_host http_response_read
func httpResponseRead(at, size uint32) int32

func address(of []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(of)))) }

// ask sends a request and returns the JSON object that answers it.
func ask(method, url string, body any) (any, error) {
	headers := map[string]string{"Accept": "application/json"}
	request := map[string]any{"method": method, "url": url, "headers": headers}
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		headers["Content-Type"] = "application/json"
		request["body"] = string(encoded)
	}
	envelope, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if httpRequest(address(envelope), uint32(len(envelope))) != 0 {
		return nil, fail("network_error", "the request was refused or failed") // Aileron knows why
	}
	status, answer := httpResponseStatus(), make([]byte, httpResponseSize())
	httpResponseRead(address(answer), uint32(len(answer)))
	var value map[string]any
	problem := decode(answer, &value)
	if status < 200 || status > 299 {
		return nil, fail("external_api_error", "the service answered %d: %v", status, value["error"])
	}
	if problem != nil {
		return nil, fail("external_api_error", "the service answered with something that is no JSON object")
	}
	return value, nil
}

func main() {
	var call struct {
		Op   string         `json:"op"`
		Args map[string]any `json:"args"`
	}
	input := new(bytes.Buffer)
	_, err := input.ReadFrom(os.Stdin)
	if err == nil {
		err = decode(input.Bytes(), &call)
	}
	var output any
	if err == nil {
		if op, known := ops[call.Op]; known {
			output, err = op(call.Args)
		} else {
			err = fail("connector_runtime_error", "there is no op %s", call.Op)
		}
	}
	printed := map[string]any{"output": output}
	if err != nil {
		told, typed := err.(failure)
		if !typed {
			told = failure{"connector_runtime_error", err.Error()}
		}
		printed = map[string]any{"error": told}
	}
	json.NewEncoder(os.Stdout).Encode(printed)
}
