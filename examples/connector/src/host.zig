//! What the host gives a connector: WASI's three standard streams and `aileron_host`.

const std = @import("std");

const Iovec = extern struct { base: [*]const u8, len: usize };

extern "wasi_snapshot_preview1" fn fd_read(fd: u32, iovs: *const Iovec, count: usize, got: *usize) u16;
extern "wasi_snapshot_preview1" fn fd_write(fd: u32, iovs: *const Iovec, count: usize, put: *usize) u16;
extern "aileron_host" fn http_request(envelope: [*]const u8, len: usize) i32;
extern "aileron_host" fn http_response_size() i32;
extern "aileron_host" fn http_response_status() i32;
extern "aileron_host" fn http_response_read(to: [*]u8, len: usize) i32;

/// What a service answered; the host shows no headers to a connector.
pub const Response = struct { status: u16, body: []const u8 };

pub const RequestError = error{ HostRefused, OutOfMemory };

/// The whole of standard input.
pub fn readAll(gpa: std.mem.Allocator) ![]const u8 {
    var all: std.array_list.Managed(u8) = .init(gpa);
    var chunk: [16 * 1024]u8 = undefined;
    while (true) {
        const into: Iovec = .{ .base = &chunk, .len = chunk.len };
        var got: usize = 0;
        if (fd_read(0, &into, 1, &got) != 0) return error.StdinFailed;
        if (got == 0) return all.toOwnedSlice();
        try all.appendSlice(chunk[0..got]);
    }
}

/// Writes all of `bytes` to standard output; what the host does not take is lost, and it knows.
pub fn writeAll(bytes: []const u8) void {
    var rest = bytes;
    while (rest.len > 0) {
        const from: Iovec = .{ .base = rest.ptr, .len = rest.len };
        var put: usize = 0;
        if (fd_write(1, &from, 1, &put) != 0 or put == 0) return;
        rest = rest[put..];
    }
}

/// Sends one request and returns its answer, whatever its status. The host remembers why it
/// refused or failed one, so `HostRefused` carries no reason.
pub fn request(gpa: std.mem.Allocator, method: []const u8, url: []const u8, body: ?[]const u8) RequestError!Response {
    var out: std.Io.Writer.Allocating = .init(gpa);
    var json: std.json.Stringify = .{ .writer = &out.writer };
    writeEnvelope(&json, method, url, body) catch return error.OutOfMemory;
    const envelope = out.written();
    if (http_request(envelope.ptr, envelope.len) != 0) return error.HostRefused;

    const size = http_response_size();
    const status = http_response_status();
    if (size < 0 or status < 0) return error.HostRefused;
    const into = try gpa.alloc(u8, @intCast(size));
    if (size > 0 and http_response_read(into.ptr, into.len) != size) return error.HostRefused;
    return .{ .status = @intCast(status), .body = into };
}

fn writeEnvelope(json: *std.json.Stringify, method: []const u8, url: []const u8, body: ?[]const u8) !void {
    try json.beginObject();
    try json.objectField("method");
    try json.write(method);
    try json.objectField("url");
    try json.write(url);
    try json.objectField("headers");
    try json.beginObject();
    try json.objectField("Accept");
    try json.write("application/json");
    if (body != null) {
        try json.objectField("Content-Type");
        try json.write("application/json");
    }
    try json.endObject();
    if (body) |text| {
        try json.objectField("body");
        try json.write(text);
    }
    try json.endObject();
}
