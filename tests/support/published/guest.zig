//! Stands in for the modules of three published connectors, whose manifests and suites tests run unmodified.
//!
//! One op is one request, as the service's own reference describes it. Every request asks for the credential
//! of the connector's kind, and what the service answers is the op's output.

const std = @import("std");
const Value = std.json.Value;
const Writer = std.json.Stringify;

extern "wasi_snapshot_preview1" fn fd_read(fd: u32, iovs: *const Iovec, count: usize, got: *usize) u16;
extern "wasi_snapshot_preview1" fn fd_write(fd: u32, iovs: *const Iovec, count: usize, put: *usize) u16;
extern "aileron_host" fn http_request(envelope: [*]const u8, len: usize) i32;
extern "aileron_host" fn http_response_size() i32;
extern "aileron_host" fn http_response_status() i32;
extern "aileron_host" fn http_response_read(to: [*]u8, len: usize) i32;

const Iovec = extern struct { base: [*]const u8, len: usize };

const Op = struct {
    name: []const u8,
    method: []const u8 = "POST",
    /// `{argument}` is that argument, percent-encoded; `{!argument}` the argument as it is.
    url: []const u8,
    kind: []const u8,
    /// Of AWS's JSON protocol.
    target: ?[]const u8 = null,
    /// Of GraphQL: the document, whose variables are the arguments.
    document: ?[]const u8 = null,
    /// Members of the body, and the arguments that they are.
    body: []const [2][]const u8 = &.{},
};

const athena = "https://athena.{!region}.amazonaws.com/";
const gmail = "https://gmail.googleapis.com/gmail/v1/users/me/";
const linear = "https://api.linear.app/graphql";

const ops = [_]Op{
    .{ .name = "organization", .url = linear, .kind = "api_key", .document = "query Organization { organization { id name urlKey } }" },
    .{ .name = "issue_remove_label", .url = linear, .kind = "api_key", .document = "mutation IssueRemoveLabel($id: String!, $labelId: String!) { issueRemoveLabel(id: $id, labelId: $labelId) { success } }" },
    .{ .name = "list_recent_emails", .method = "GET", .url = gmail ++ "messages?maxResults=10", .kind = "oauth2" },
    .{ .name = "get_draft", .method = "GET", .url = gmail ++ "drafts/{id}?format=full", .kind = "oauth2" },
    .{ .name = "send_draft", .url = gmail ++ "drafts/send", .kind = "oauth2", .body = &.{.{ "id", "draft_id" }} },
    .{ .name = "list_work_groups", .url = athena, .kind = "aws_sigv4", .target = "AmazonAthena.ListWorkGroups" },
    .{ .name = "get_query_execution", .url = athena, .kind = "aws_sigv4", .target = "AmazonAthena.GetQueryExecution", .body = &.{.{ "QueryExecutionId", "query_execution_id" }} },
    .{ .name = "stop_query_execution", .url = athena, .kind = "aws_sigv4", .target = "AmazonAthena.StopQueryExecution", .body = &.{.{ "QueryExecutionId", "query_execution_id" }} },
};

const gpa = std.heap.wasm_allocator;

export fn _start() void {
    const line = run() catch |problem| std.fmt.allocPrint(gpa, "{{\"error\":{{\"class\":\"connector_runtime_error\",\"message\":\"{s}\"}}}}", .{@errorName(problem)}) catch return;
    var put: usize = 0;
    _ = fd_write(1, &.{ .base = line.ptr, .len = line.len }, 1, &put);
}

fn run() ![]const u8 {
    var input: [64 * 1024]u8 = undefined;
    var size: usize = 0;
    while (true) {
        var got: usize = 0;
        if (fd_read(0, &.{ .base = input[size..].ptr, .len = input.len - size }, 1, &got) != 0) return error.StdinFailed;
        if (got == 0) break;
        size += got;
    }
    const call = (try std.json.parseFromSliceLeaky(Value, gpa, input[0..size], .{})).object;
    const args: Value = call.get("args") orelse .{ .object = .empty };
    for (ops) |op| {
        if (std.mem.eql(u8, op.name, call.get("op").?.string)) return send(op, args);
    }
    return error.UnknownOp;
}

fn send(op: Op, args: Value) ![]const u8 {
    var out: std.Io.Writer.Allocating = .init(gpa);
    var writer: Writer = .{ .writer = &out.writer };
    try writer.beginObject();
    try field(&writer, "method", op.method);
    try field(&writer, "url", try filled(op.url, args));
    try field(&writer, "credential", op.kind);
    try writer.objectField("headers");
    try writer.beginObject();
    if (op.target) |target| try field(&writer, "X-Amz-Target", target);
    if (!std.mem.eql(u8, op.method, "GET"))
        try field(&writer, "Content-Type", if (op.target == null) "application/json" else "application/x-amz-json-1.1");
    try writer.endObject();
    if (!std.mem.eql(u8, op.method, "GET")) try field(&writer, "body", try body(op, args));
    try writer.endObject();
    const envelope = out.written();
    if (http_request(envelope.ptr, envelope.len) != 0) return error.HostRefused;

    const answer = try gpa.alloc(u8, @intCast(http_response_size()));
    if (answer.len > 0) _ = http_response_read(answer.ptr, answer.len);
    const status = http_response_status();
    if (status < 200 or status > 299) {
        const message = try std.fmt.allocPrint(gpa, "the service answered {d}: {s}", .{ status, answer });
        return std.json.Stringify.valueAlloc(gpa, .{ .@"error" = .{ .class = "external_api_error", .message = message } }, .{});
    }
    const parsed = try std.json.parseFromSliceLeaky(Value, gpa, answer, .{});
    const output = if (op.document == null) parsed else parsed.object.get("data") orelse return error.NoData;
    return std.json.Stringify.valueAlloc(gpa, .{ .output = output }, .{});
}

fn body(op: Op, args: Value) ![]const u8 {
    if (op.document) |document| return std.json.Stringify.valueAlloc(gpa, .{ .query = document, .variables = args }, .{});
    var out: std.Io.Writer.Allocating = .init(gpa);
    var writer: Writer = .{ .writer = &out.writer };
    try writer.beginObject();
    for (op.body) |member| try field(&writer, member[0], args.object.get(member[1]) orelse return error.ArgumentMissing);
    try writer.endObject();
    return out.written();
}

fn field(writer: *Writer, name: []const u8, value: anytype) !void {
    try writer.objectField(name);
    try writer.write(value);
}

fn filled(template: []const u8, args: Value) ![]const u8 {
    var out: std.Io.Writer.Allocating = .init(gpa);
    var rest = template;
    while (std.mem.indexOfScalar(u8, rest, '{')) |at| {
        const end = std.mem.indexOfScalar(u8, rest, '}').?;
        try out.writer.writeAll(rest[0..at]);
        const raw = rest[at + 1] == '!';
        const name = rest[at + 1 + @as(usize, @intFromBool(raw)) .. end];
        const argument = (args.object.get(name) orelse return error.ArgumentMissing).string;
        if (raw) try out.writer.writeAll(argument) else try std.Uri.Component.percentEncode(&out.writer, argument, isUnreserved);
        rest = rest[end + 1 ..];
    }
    try out.writer.writeAll(rest);
    return out.written();
}

fn isUnreserved(byte: u8) bool {
    return std.ascii.isAlphanumeric(byte) or std.mem.indexOfScalar(u8, "-._~", byte) != null;
}
