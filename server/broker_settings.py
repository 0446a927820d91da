"""From the settings that people write to those that the parts of the core take."""

import os
from pathlib import Path

from server.assembly import BrokerSettings
from server.checks import SubscriptionLimits
from server.deliveries import DeliverySettings
from server.errors import CannotStart
from server.housekeeping import RetentionSettings
from server.publishing import PublishingSettings
from server.settings import Settings
from sievefilters import ExtractorError, Extractors
from xpathfilter import DocumentLimits

__all__ = ["broker_settings"]


def broker_settings(settings: Settings) -> BrokerSettings:
    """The core's share of the settings; `CannotStart` if an extractor is not XPath."""
    limits = settings.limits
    documents = DocumentLimits(limits.max_document_bytes, limits.max_document_depth, settings.publishing.allow_entities)
    return BrokerSettings(
        store_url=_store_url(settings),
        store_deadline=settings.store.deadline,
        publishing=_publishing(settings),
        matching_threads=settings.matching.threads or os.cpu_count() or 1,
        delivery=_delivery(settings),
        subscription_limits=SubscriptionLimits(limits.max_subscriptions_per_tenant, limits.max_expression_length),
        document_limits=documents,
        retention=RetentionSettings(**settings.retention.model_dump()),
        extractors=_extractors(settings, documents),
    )


def _store_url(settings: Settings) -> str:
    """The URL; the folder of a file is made, so that the first start needs no preparation."""
    url = settings.store.url.get_secret_value()
    if "://" not in url:
        _make_folder(Path(url).parent)
    return url


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(f"the folder {folder} of the store cannot be made: {error.strerror}") from error


def _publishing(settings: Settings) -> PublishingSettings:
    publishing = settings.publishing
    return PublishingSettings(
        batch_documents=publishing.batch_documents,
        most_waiting_bytes=publishing.most_waiting_bytes,
        repetition_window=publishing.repetition_window,
        most_repetitions=publishing.most_repetitions,
    )


def _delivery(settings: Settings) -> DeliverySettings:
    webhooks, smtp = settings.webhooks, settings.smtp
    return DeliverySettings(
        **settings.delivery.model_dump(),
        max_unacked_bytes=settings.limits.max_outstanding_bytes_per_stream,
        push_concurrency=webhooks.concurrency,
        webhook_timeout=webhooks.timeout,
        webhook_allow_http=webhooks.allow_http,
        webhook_allow_private=webhooks.allow_private,
        smtp_host=smtp.host,
        smtp_port=smtp.port,
        smtp_starttls=smtp.starttls,
        smtp_username=smtp.username,
        smtp_password=smtp.password.get_secret_value(),
        smtp_sender=smtp.sender,
        smtp_timeout=smtp.timeout,
    )


def _extractors(settings: Settings, limits: DocumentLimits) -> Extractors:
    try:
        return Extractors(settings.extractors, settings.namespaces, limits)
    except ExtractorError as error:
        raise CannotStart(f"{settings.origin_of(error.field)}: {error}") from error
