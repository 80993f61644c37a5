//! What the connectors here share: the host's functions, an op's arguments, a service's answers.
//!
//! One JSON object `{"op", "args"}` on standard input, one `{"output"}` or `{"error"}` on standard
//! output. Nothing is kept between runs, and no credential is ever seen: a request names its kind,
//! and the host adds it.
//!
//! A module's root file declares `service`, a `Service`.

const std = @import("std");
const root = @import("root");
pub const Value = std.json.Value;
pub const Buffer = std.array_list.Managed(u8);

/// The service that a connector talks to.
pub const Service = struct {
    /// As it stands in errors.
    name: []const u8,
    /// The kind of credential that each request asks for, as the manifest declares it.
    credential: ?[]const u8 = null,
    accept: []const u8 = "application/json",
    /// Further headers of each request.
    headers: []const [2][]const u8 = &.{},
    /// What an error's JSON says, for a person.
    problem: *const fn (gpa: std.mem.Allocator, answer: Value) ?[]const u8,
};

const service: Service = root.service;

const Iovec = extern struct { base: [*]const u8, len: usize };
/// A clock to wait for, as WASI lays it out; little-endian, so that a tag of one byte is a whole number.
const Subscription = extern struct { userdata: u64, tag: u64, clock: u64, timeout: u64, precision: u64, flags: u64 };

extern "wasi_snapshot_preview1" fn fd_read(fd: u32, iovs: *const Iovec, count: usize, got: *usize) u16;
extern "wasi_snapshot_preview1" fn fd_write(fd: u32, iovs: *const Iovec, count: usize, put: *usize) u16;
extern "wasi_snapshot_preview1" fn poll_oneoff(in: *const Subscription, out: *[32]u8, count: usize, events: *usize) u16;
extern "aileron_host" fn http_request(envelope: [*]const u8, len: usize) i32;
extern "aileron_host" fn http_response_size() i32;
extern "aileron_host" fn http_response_status() i32;
extern "aileron_host" fn http_response_read(to: [*]u8, len: usize) i32;

/// What a service answered; the host shows no headers to a connector.
pub const Response = struct { status: u16, body: []const u8 };

pub const RequestError = error{ HostRefused, OutOfMemory };

/// A failure stands in the op's `Context`; the host knows the cause of `HostRefused` itself.
pub const OpError = error{ Failed, HostRefused, OutOfMemory };

/// The member `key` of an object, or null where `value` is no object or has none.
pub fn member(value: Value, key: []const u8) ?Value {
    return switch (value) {
        .object => |object| object.get(key),
        else => null,
    };
}

/// The member `key` where it is a string.
pub fn string(value: Value, key: []const u8) ?[]const u8 {
    const found = member(value, key) orelse return null;
    return switch (found) {
        .string => |text| text,
        else => null,
    };
}

/// Waits for so many milliseconds.
pub fn wait(milliseconds: u64) void {
    const due: Subscription = .{ .userdata = 0, .tag = 0, .clock = 1, .timeout = milliseconds * 1_000_000, .precision = 0, .flags = 0 };
    var event: [32]u8 = undefined;
    var count: usize = 0;
    _ = poll_oneoff(&due, &event, 1, &count);
}

/// The JSON text of a value.
pub fn json(gpa: std.mem.Allocator, value: anytype) error{OutOfMemory}![]const u8 {
    return std.json.Stringify.valueAlloc(gpa, value, .{});
}

/// One run of one op: its arguments, and why it failed.
pub const Context = struct {
    gpa: std.mem.Allocator,
    args: Value,
    class: []const u8 = "connector_runtime_error",
    message: []const u8 = "",

    pub fn fail(self: *Context, class: []const u8, pieces: []const []const u8) OpError {
        self.class = class;
        self.message = std.mem.concat(self.gpa, u8, pieces) catch return error.OutOfMemory;
        return error.Failed;
    }

    pub fn badArgument(self: *Context, name: []const u8, problem: []const u8) OpError {
        return self.fail("connector_runtime_error", &.{ "argument ", name, " ", problem });
    }

    /// An optional string argument; null counts as absent.
    pub fn text(self: *Context, name: []const u8) OpError!?[]const u8 {
        const value = member(self.args, name) orelse return null;
        return switch (value) {
            .null => null,
            .string => |found| found,
            else => self.badArgument(name, "must be a string"),
        };
    }

    /// A required string argument that is not empty.
    pub fn required(self: *Context, name: []const u8) OpError![]const u8 {
        const given = try self.text(name) orelse return self.badArgument(name, "is missing");
        if (given.len == 0) return self.badArgument(name, "is empty");
        return given;
    }

    /// A required id, escaped as one path segment.
    pub fn id(self: *Context, name: []const u8) OpError![]const u8 {
        const given = try self.required(name);
        if (std.mem.eql(u8, given, ".") or std.mem.eql(u8, given, ".."))
            return self.badArgument(name, "is no id");
        return self.escape(given);
    }

    /// An optional integer argument between two bounds, in digits.
    pub fn integer(self: *Context, name: []const u8, least: i64, most: i64) OpError!?[]const u8 {
        const value = member(self.args, name) orelse return null;
        switch (value) {
            .null => return null,
            .integer => |number| {
                if (number >= least and number <= most)
                    return std.fmt.allocPrint(self.gpa, "{d}", .{number}) catch error.OutOfMemory;
                const bounds = std.fmt.allocPrint(self.gpa, "must be from {d} to {d}", .{ least, most }) catch return error.OutOfMemory;
                return self.badArgument(name, bounds);
            },
            else => return self.badArgument(name, "must be an integer"),
        }
    }

    /// An optional boolean argument.
    pub fn boolean(self: *Context, name: []const u8) OpError!?bool {
        const value = member(self.args, name) orelse return null;
        return switch (value) {
            .null => null,
            .bool => |found| found,
            else => self.badArgument(name, "must be true or false"),
        };
    }

    /// Percent-encodes what is not unreserved (RFC 3986, 2.3), slashes too.
    pub fn escape(self: *Context, given: []const u8) OpError![]const u8 {
        var out: Buffer = .init(self.gpa);
        for (given) |byte| switch (byte) {
            'A'...'Z', 'a'...'z', '0'...'9', '-', '.', '_', '~' => try out.append(byte),
            else => {
                const digits = "0123456789ABCDEF";
                try out.appendSlice(&.{ '%', digits[byte >> 4], digits[byte & 15] });
            },
        };
        return out.toOwnedSlice();
    }

    /// Sends a request and returns its answer, whatever its status. The host remembers why it
    /// refused or failed one, so `HostRefused` carries no reason.
    pub fn send(self: *Context, method: []const u8, url: []const u8, body: ?[]const u8) RequestError!Response {
        var out: std.Io.Writer.Allocating = .init(self.gpa);
        var writer: std.json.Stringify = .{ .writer = &out.writer };
        writeEnvelope(&writer, method, url, body) catch return error.OutOfMemory;
        const envelope = out.written();
        if (http_request(envelope.ptr, envelope.len) != 0) return error.HostRefused;

        const size = http_response_size();
        const status = http_response_status();
        if (size < 0 or status < 0) return error.HostRefused;
        const into = try self.gpa.alloc(u8, @intCast(size));
        if (size > 0 and http_response_read(into.ptr, into.len) != size) return error.HostRefused;
        return .{ .status = @intCast(status), .body = into };
    }

    /// Sends a request; its JSON object where the service agreed, else a failure in the service's own words.
    pub fn ask(self: *Context, method: []const u8, url: []const u8, body: ?[]const u8) OpError!Value {
        return self.parse(try self.send(method, url, body), .object);
    }

    /// The JSON of an answer with a status of success, an object or a list; a failure for any other.
    pub fn parse(self: *Context, response: Response, wanted: enum { object, list }) OpError!Value {
        const parsed = std.json.parseFromSliceLeaky(Value, self.gpa, response.body, .{ .parse_numbers = false });
        var code_text: [8]u8 = undefined;
        const code = std.fmt.bufPrint(&code_text, "{d}", .{response.status}) catch "?";
        if (response.status < 200 or response.status > 299) {
            const class = if (response.status == 401) "binding_failed" else "external_api_error";
            const said: ?[]const u8 = if (parsed) |answer| service.problem(self.gpa, answer) else |_| null;
            if (said) |words| return self.fail(class, &.{ service.name, " answered ", code, ": ", words });
            return self.fail(class, &.{ service.name, " answered ", code });
        }
        const answer = parsed catch |problem| switch (problem) {
            error.OutOfMemory => return error.OutOfMemory,
            else => return self.fail("external_api_error", &.{ service.name, " answered ", code, " with something that is not JSON" }),
        };
        const fits = if (wanted == .object) answer == .object else answer == .array;
        if (!fits) return self.fail("external_api_error", &.{ service.name, " answered ", code, " with JSON that is no ", @tagName(wanted) });
        return answer;
    }
};

fn writeEnvelope(writer: *std.json.Stringify, method: []const u8, url: []const u8, body: ?[]const u8) !void {
    try writer.beginObject();
    try writer.objectField("method");
    try writer.write(method);
    try writer.objectField("url");
    try writer.write(url);
    try writer.objectField("headers");
    try writer.beginObject();
    try writer.objectField("Accept");
    try writer.write(service.accept);
    inline for (service.headers) |header| {
        try writer.objectField(header[0]);
        try writer.write(header[1]);
    }
    if (body != null) {
        try writer.objectField("Content-Type");
        try writer.write("application/json");
    }
    try writer.endObject();
    if (service.credential) |kind| {
        try writer.objectField("credential");
        try writer.write(kind);
    }
    if (body) |text| {
        try writer.objectField("body");
        try writer.write(text);
    }
    try writer.endObject();
}

/// Runs the op that standard input names, one of `ops` (pairs of name and function), and prints its end.
pub fn main(comptime ops: anytype) void {
    const gpa = std.heap.wasm_allocator;
    var context: Context = .{ .gpa = gpa, .args = .null };
    const line = if (run(&context, ops)) |output|
        json(gpa, .{ .output = output })
    else |problem| blk: {
        if (problem == error.OutOfMemory) context.message = "out of memory";
        if (problem == error.HostRefused) context.message = "the host refused or failed the request";
        break :blk json(gpa, .{ .@"error" = .{ .class = context.class, .message = context.message } });
    };
    writeAll(line catch "{\"error\":{\"class\":\"connector_runtime_error\",\"message\":\"out of memory\"}}");
}

fn run(context: *Context, comptime ops: anytype) OpError!Value {
    const input = readAll(context.gpa) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        error.StdinFailed => return context.fail("connector_runtime_error", &.{"standard input cannot be read"}),
    };
    const call = std.json.parseFromSliceLeaky(Value, context.gpa, input, .{}) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return context.fail("connector_runtime_error", &.{"standard input is not one JSON object"}),
    };
    const op = string(call, "op") orelse
        return context.fail("connector_runtime_error", &.{"standard input names no op"});
    if (member(call, "args")) |args| switch (args) {
        .object => context.args = args,
        .null => {},
        else => return context.fail("connector_runtime_error", &.{"args must be an object"}),
    };
    inline for (ops) |entry| {
        if (std.mem.eql(u8, op, entry[0])) return entry[1](context);
    }
    return context.fail("connector_runtime_error", &.{ "there is no op ", op });
}

/// The whole of standard input.
fn readAll(gpa: std.mem.Allocator) ![]const u8 {
    var all: Buffer = .init(gpa);
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
fn writeAll(bytes: []const u8) void {
    var rest = bytes;
    while (rest.len > 0) {
        const from: Iovec = .{ .base = rest.ptr, .len = rest.len };
        var put: usize = 0;
        if (fd_write(1, &from, 1, &put) != 0 or put == 0) return;
        rest = rest[put..];
    }
}
