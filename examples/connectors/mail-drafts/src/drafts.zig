//! The ops of Gmail's drafts: list, get, update, send. Two modules are made of them: `main.zig`, and
//! `oauth2.zig`, whose requests carry the account that a person bound.

const std = @import("std");
const connector = @import("connector");
const mail = @import("mail.zig");
const Context = connector.Context;
const OpError = connector.OpError;
const Value = connector.Value;
const json = connector.json;

const base = "https://gmail.googleapis.com/gmail/v1/users/me/drafts";

/// Google's errors: `{"error": {"code", "message", "status"}}`.
pub fn problem(_: std.mem.Allocator, answer: Value) ?[]const u8 {
    return connector.string(connector.member(answer, "error") orelse return null, "message");
}

fn getDraft(context: *Context) OpError!Value {
    const url = try std.mem.concat(context.gpa, u8, &.{ base, "/", try context.id("id"), "?format=full" });
    var draft = try context.ask("GET", url, null);
    const message = connector.member(draft, "message") orelse return draft;
    const payload = connector.member(message, "payload") orelse return draft;
    const text = mail.wholeText(context.gpa, payload) catch |failure| switch (failure) {
        error.OutOfMemory => return error.OutOfMemory,
        // Better no preview than one that hides part of the message.
        error.BadBase64 => return context.fail("external_api_error", &.{"a part of the draft is not base64url"}),
        error.TooDeep => return context.fail("external_api_error", &.{"the parts of the draft are nested too deeply"}),
        error.Separate => return context.fail("external_api_error", &.{"a text of the draft is too large: Gmail sends it separately"}),
    };
    mail.dropAttachmentIds(draft.object.getPtr("message").?.object.getPtr("payload").?);
    try draft.object.put(context.gpa, "text", .{ .string = text });
    return draft;
}

fn listDrafts(context: *Context) OpError!Value {
    var url: connector.Buffer = .init(context.gpa);
    try url.appendSlice(base);
    var separator: []const u8 = "?";
    const pairs = [_][2][]const u8{ .{ "query", "q" }, .{ "page_token", "pageToken" } };
    for (pairs) |pair| {
        const value = try context.text(pair[0]) orelse continue;
        for ([_][]const u8{ separator, pair[1], "=", try context.escape(value) }) |piece| try url.appendSlice(piece);
        separator = "&";
    }
    if (try context.integer("max_results", 1, 500)) |number| {
        for ([_][]const u8{ separator, "maxResults=", number }) |piece| try url.appendSlice(piece);
    }
    return context.ask("GET", url.items, null);
}

fn sendDraft(context: *Context) OpError!Value {
    _ = try context.id("draft_id");
    const body = try json(context.gpa, .{ .id = try context.required("draft_id") });
    return context.ask("POST", base ++ "/send", body);
}

fn updateDraft(context: *Context) OpError!Value {
    const url = try std.mem.concat(context.gpa, u8, &.{ base, "/", try context.id("id") });
    const to = try context.text("to");
    const subject = try context.text("subject");
    const body = try context.text("body");
    const bcc = try context.text("bcc");

    const full = try std.mem.concat(context.gpa, u8, &.{ url, "?format=full" });
    const message = connector.member(try context.ask("GET", full, null), "message") orelse Value.null;
    const payload = connector.member(message, "payload") orelse Value.null;
    if (!mail.isPlain(payload))
        return context.fail("connector_runtime_error", &.{"the draft is more than plain text; writing it anew would lose its other parts"});
    const old_text = mail.wholeText(context.gpa, payload) catch |failure| switch (failure) {
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
    const raw = changed.raw(context.gpa) catch |failure| switch (failure) {
        error.OutOfMemory => return error.OutOfMemory,
        error.LineBreakInHeader => return context.fail("connector_runtime_error", &.{"a header may not contain a line break"}),
    };
    const request = if (connector.string(message, "threadId")) |thread|
        try json(context.gpa, .{ .message = .{ .raw = raw, .threadId = thread } })
    else
        try json(context.gpa, .{ .message = .{ .raw = raw } });
    return context.ask("PUT", url, request);
}

pub const ops = .{
    .{ "get_draft", getDraft },
    .{ "list_drafts", listDrafts },
    .{ "send_draft", sendDraft },
    .{ "update_draft", updateDraft },
};
