"""The drafts that lie in a fresh mailbox; ids and times are the same each time."""

import functools
from email.message import EmailMessage

__all__ = ["new_mail", "seed_drafts"]

_ME = "Jana Keller <jana.keller@nordlicht.example>"

_LONG = "\n\n".join(
    f"{number}. {line}"
    for number, line in enumerate(
        [
            (
                "Delivery. The supplier delivers at the latest on the fifteenth working day after a call-off. "
                "Partial deliveries need our consent in text form."
            ),
            (
                "Prices. The prices of annex A hold until 31 December. An increase has to be announced three "
                "months ahead and may not exceed 3.5 per cent."
            ),
            "Payment. Thirty days after receipt of goods and invoice, or fourteen days with 2 per cent off.",
            (
                "Defects. We report visible defects within ten working days, hidden ones within ten working days "
                "of finding them. Repair or replacement is the supplier's choice, twice; then it is ours."
            ),
            "Liability. Limited to twice the annual order value, except for intent and gross negligence.",
            "Confidentiality. Five years beyond the end of this agreement; the drawings of annex C for ever.",
            "Term. Two years, prolonged by one year each unless ended with six months' notice.",
            (
                "Termination for cause. Either side, where the other is more than thirty days late in spite of a "
                "reminder, or stops its payments."
            ),
            "Law and venue. German law without the CISG; Hamburg.",
        ]
        * 3,
        start=1,
    )
)


def new_mail(to: str, subject: str, body: str, *, cc: str = "", bcc: str = "") -> EmailMessage:
    """Return a mail from the mailbox's owner."""
    mail = EmailMessage()
    mail["From"] = _ME
    mail["To"] = to
    if cc:
        mail["Cc"] = cc
    if bcc:
        mail["Bcc"] = bcc
    mail["Subject"] = subject
    mail["Date"] = "Mon, 12 Oct 2026 09:41:07 +0200"
    mail.set_content(body)
    return mail


@functools.cache
def seed_drafts() -> tuple[tuple[str, EmailMessage], ...]:
    """Return drafts with their ids, newest first; every mailbox has the same ones, and changes none."""
    numbers = new_mail(
        "Anna Brandt <anna.brandt@nordlicht.example>",
        "Q3 numbers",
        "Hi Anna,\n\nhere are the Q3 numbers before Thursday's meeting: revenue 4.21 M EUR (+6.3 %), "
        "churn 1.9 %, cash 2.75 M EUR. The board pack follows tomorrow.\n\nBest\nJana\n",
        cc="Tom Weber <tom.weber@nordlicht.example>",
    )
    german = new_mail(
        "Prof. Jürgen Müßig <j.muessig@uni-luebeck.example>",
        "Rückfrage zum Angebot – Lieferung in KW 45",
        "Sehr geehrter Herr Professor Müßig,\n\nvielen Dank für Ihr Angebot vom 2. Oktober. Können Sie die "
        "Lieferung in Kalenderwoche 45 zusagen? Die Gesamtsumme von 18.450,00 € ist freigegeben.\n\n"
        "Mit freundlichen Grüßen\nJana Keller\n",
    )
    contract = new_mail(
        "legal@harbour-parts.example",
        "Frame agreement, our comments",
        f"Dear all,\n\nour comments on the draft of the frame agreement:\n\n{_LONG}\n\nKind regards\nJana Keller\n",
        bcc="archive@nordlicht.example",
    )
    invoice = new_mail(
        "billing@cloudhost.example",
        "Invoice 2026-1044: charged twice",
        "Hello,\n\ninvoice 2026-1044 over 312.80 EUR was charged twice on 5 October. Please refund one of them.\n\nJana Keller\n",
    )
    report = new_mail(
        "Board <board@nordlicht.example>",
        "Board pack October",
        "Dear board,\n\nthe pack for October is attached.\n\nJana\n",
    )
    report.add_alternative(
        "<p>Dear board,</p><p>the pack for <b>October</b> is attached.</p>", subtype="html"
    )
    report.add_attachment(
        b"%PDF-1.7 not really", maintype="application", subtype="pdf", filename="pack.pdf"
    )
    # Fixed, so that a fresh mailbox is the same each time.
    for number, part in enumerate(part for part in report.walk() if part.is_multipart()):
        part.set_boundary(f"=_part_{number}")
    return (
        ("r-8842190447", numbers),
        ("r-8842190312", german),
        ("r-8842189950", contract),
        ("r-8842189771", invoice),
        ("r-8842188204", report),
    )
