//! A connector for Gmail's drafts: list, get, update, send.
//!
//! One JSON object `{"op", "args"}` on standard input, one `{"output"}` or `{"error"}` on standard
//! output. It keeps nothing between runs and holds no credential.

const std = @import("std");
const host = @import("host.zig");
const mail = @import("mail.zig");
const Value = std.json.Value;

const base = "https://gmail.googleapis.com/gmail/v1/users/me/drafts";

/// Failures end here with `failure` filled in; the host knows the cause of `HostRefused` itself.
const OpError = error{ Failed, HostRefused, OutOfMemory };

const Context = struct {
    gpa: std.mem.Allocator,
    args: Value,
    class: []const u8 = "connector_runtime_error",
    message: []const u8 = "",

    fn fail(self: *Context, class: []const u8, pieces: []const []const u8) OpError {
        self.class = class;
        self.message = std.mem.concat(self.gpa, u8, pieces) catch return error.OutOfMemory;
        return error.Failed;
    }

    fn badArgument(self: *Context, name: []const u8, problem: []const u8) OpError {
        return self.fail("connector_runtime_error", &.{ "argument ", name, " ", problem });
    }

    /// An optional string argument; null counts as absent.
    fn text(self: *Context, name: []const u8) OpError!?[]const u8 {
        const value = mail.member(self.args, name) orelse return null;
        return switch (value) {
            .null => null,
            .string => |found| found,
            else => self.badArgument(name, "must be a string"),
        };
    }

    /// A required draft id, escaped as one path segment.
    fn id(self: *Context, name: []const u8) OpError![]const u8 {
        const given = try self.text(name) orelse return self.badArgument(name, "is missing");
        if (given.len == 0) return self.badArgument(name, "is empty");
        if (std.mem.eql(u8, given, ".") or std.mem.eql(u8, given, ".."))
            return self.badArgument(name, "is no draft id");
        return self.escape(given);
    }

    fn escape(self: *Context, given: []const u8) OpError![]const u8 {
        var out: std.array_list.Managed(u8) = .init(self.gpa);
        for (given) |byte| switch (byte) {
            'A'...'Z', 'a'...'z', '0'...'9', '-', '.', '_', '~' => try out.append(byte),
            else => {
                const digits = "0123456789ABCDEF";
                try out.appendSlice(&.{ '%', digits[byte >> 4], digits[byte & 15] });
            },
        };
        return out.toOwnedSlice();
    }

    /// Sends a request; its JSON where Gmail agreed, else a failure in Gmail's own words.
    fn ask(self: *Context, method: []const u8, url: []const u8, body: ?[]const u8) OpError!Value {
        const response = try host.request(self.gpa, method, url, body);
        const parsed = std.json.parseFromSliceLeaky(Value, self.gpa, response.body, .{ .parse_numbers = false });
        var code_text: [8]u8 = undefined;
        const code = std.fmt.bufPrint(&code_text, "{d}", .{response.status}) catch "?";
        if (response.status < 200 or response.status > 299) {
            const said: ?[]const u8 = blk: {
                const answer = parsed catch break :blk null;
                const problem = mail.member(answer, "error") orelse break :blk null;
                break :blk mail.string(problem, "message");
            };
            if (said) |words| return self.fail("external_api_error", &.{ "Gmail answered ", code, ": ", words });
            return self.fail("external_api_error", &.{ "Gmail answered ", code });
        }
        const answer = parsed catch |problem| switch (problem) {
            error.OutOfMemory => return error.OutOfMemory,
            else => return self.fail("external_api_error", &.{ "Gmail answered ", code, " with something that is not JSON" }),
        };
        if (answer != .object)
            return self.fail("external_api_error", &.{ "Gmail answered ", code, " with something that is no JSON object" });
        return answer;
    }
};

fn getDraft(context: *Context) OpError!Value {
    const url = try std.mem.concat(context.gpa, u8, &.{ base, "/", try context.id("id"), "?format=full" });
    var draft = try context.ask("GET", url, null);
    const message = mail.member(draft, "message") orelse return draft;
    const payload = mail.member(message, "payload") orelse return draft;
    const text = mail.wholeText(context.gpa, payload) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        // Better no preview than one that hides part of the message.
        error.BadBase64 => return context.fail("external_api_error", &.{"a part of the draft is not base64url"}),
        error.TooDeep => return context.fail("external_api_error", &.{"the parts of the draft are nested too deeply"}),
    };
    try draft.object.put(context.gpa, "text", .{ .string = text });
    return draft;
}

fn listDrafts(context: *Context) OpError!Value {
    var url: std.array_list.Managed(u8) = .init(context.gpa);
    try url.appendSlice(base);
    var separator: []const u8 = "?";
    const pairs = [_][2][]const u8{ .{ "query", "q" }, .{ "page_token", "pageToken" } };
    for (pairs) |pair| {
        const value = try context.text(pair[0]) orelse continue;
        for ([_][]const u8{ separator, pair[1], "=", try context.escape(value) }) |piece| try url.appendSlice(piece);
        separator = "&";
    }
    if (mail.member(context.args, "max_results")) |value| switch (value) {
        .null => {},
        .integer => |count| {
            if (count < 1 or count > 500) return context.badArgument("max_results", "must be from 1 to 500");
            var digits: [8]u8 = undefined;
            const number = std.fmt.bufPrint(&digits, "{d}", .{count}) catch "";
            for ([_][]const u8{ separator, "maxResults=", number }) |piece| try url.appendSlice(piece);
        },
        else => return context.badArgument("max_results", "must be an integer"),
    };
    return context.ask("GET", url.items, null);
}

fn sendDraft(context: *Context) OpError!Value {
    const given = try context.text("draft_id");
    _ = try context.id("draft_id");
    const body = try json(context.gpa, .{ .id = given.? });
    return context.ask("POST", base ++ "/send", body);
}

fn updateDraft(context: *Context) OpError!Value {
    const url = try std.mem.concat(context.gpa, u8, &.{ base, "/", try context.id("id") });
    const to = try context.text("to");
    const subject = try context.text("subject");
    const body = try context.text("body");
    const bcc = try context.text("bcc");

    const full = try std.mem.concat(context.gpa, u8, &.{ url, "?format=full" });
    const message = mail.member(try context.ask("GET", full, null), "message") orelse Value.null;
    const payload = mail.member(message, "payload") orelse Value.null;
    if (!mail.isPlain(payload))
        return context.fail("connector_runtime_error", &.{"the draft is more than plain text; writing it anew would lose its other parts"});
    const old_text = mail.wholeText(context.gpa, payload) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return context.fail("external_api_error", &.{"the text of the draft cannot be read"}),
    };
    const changed: mail.Message = .{
        .headers = &.{
            .{ .name = "From", .kind = .addresses, .value = mail.header(payload, "From") },
            .{ .name = "To", .kind = .addresses, .value = to orelse mail.header(payload, "To") },
            .{ .name = "Cc", .kind = .addresses, .value = mail.header(payload, "Cc") },
            .{ .name = "Bcc", .kind = .addresses, .value = bcc orelse mail.header(payload, "Bcc") },
            .{ .name = "Subject", .value = subject orelse mail.header(payload, "Subject") },
            .{ .name = "In-Reply-To", .value = mail.header(payload, "In-Reply-To") },
            .{ .name = "References", .value = mail.header(payload, "References") },
        },
        .body = body orelse old_text,
    };
    const raw = changed.raw(context.gpa) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        error.LineBreakInHeader => return context.fail("connector_runtime_error", &.{"a header may not contain a line break"}),
    };
    const request = if (mail.string(message, "threadId")) |thread|
        try json(context.gpa, .{ .message = .{ .raw = raw, .threadId = thread } })
    else
        try json(context.gpa, .{ .message = .{ .raw = raw } });
    return context.ask("PUT", url, request);
}

const ops = .{
    .{ "get_draft", getDraft },
    .{ "list_drafts", listDrafts },
    .{ "send_draft", sendDraft },
    .{ "update_draft", updateDraft },
};

fn run(context: *Context) OpError!Value {
    const input = host.readAll(context.gpa) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        error.StdinFailed => return context.fail("connector_runtime_error", &.{"standard input cannot be read"}),
    };
    const call = std.json.parseFromSliceLeaky(Value, context.gpa, input, .{}) catch |problem| switch (problem) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return context.fail("connector_runtime_error", &.{"standard input is not one JSON object"}),
    };
    const op = mail.string(call, "op") orelse
        return context.fail("connector_runtime_error", &.{"standard input names no op"});
    if (mail.member(call, "args")) |args| switch (args) {
        .object => context.args = args,
        .null => {},
        else => return context.fail("connector_runtime_error", &.{"args must be an object"}),
    };
    inline for (ops) |entry| {
        if (std.mem.eql(u8, op, entry[0])) return entry[1](context);
    }
    return context.fail("connector_runtime_error", &.{ "there is no op ", op });
}

fn json(gpa: std.mem.Allocator, value: anytype) error{OutOfMemory}![]const u8 {
    return std.json.Stringify.valueAlloc(gpa, value, .{});
}

export fn _start() void {
    const gpa = std.heap.wasm_allocator;
    var context: Context = .{ .gpa = gpa, .args = .null };
    const line = if (run(&context)) |output|
        json(gpa, .{ .output = output })
    else |problem| blk: {
        if (problem == error.OutOfMemory) context.message = "out of memory";
        if (problem == error.HostRefused) context.message = "the host refused or failed the request";
        break :blk json(gpa, .{ .@"error" = .{ .class = context.class, .message = context.message } });
    };
    host.writeAll(line catch "{\"error\":{\"class\":\"connector_runtime_error\",\"message\":\"out of memory\"}}");
}
